/**
 * A cell in 16 bits, as `record/cells/codes.py` has it: 0 without a number, else the upper half of a float32 plus 1; and the
 * highest bit where the module has NaN or infinity. So the largest of several codes is that of the largest number, and a cell that
 * is not finite is never hidden by others.
 */

export const BAD = 0x8000;
const LARGEST = 0x7f80;
/** The code of the number 0. */
export const ZERO = 1;

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** The number of a code, within 0.4 %; NaN without one. */
export function numberOf(code: number): number {
  const number = Math.min(code & ~BAD, LARGEST);
  if (number === 0) return NaN;
  bits[0] = (number - 1) << 16;
  return float[0]!;
}

export function isBad(code: number): boolean {
  return (code & BAD) !== 0;
}
