/** The code of a number from 0 on, as the server makes it (`record/cells/codes.py`); 0 for NaN. */
export function codeOf(value: number): number {
  if (Number.isNaN(value)) return 0;
  const [bits] = new Uint32Array(new Float32Array([Math.max(0, value)]).buffer);
  return Math.min((bits! + 0x8000) >>> 16, 0x7f7f) + 1;
}
