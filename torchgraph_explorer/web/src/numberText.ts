/** Numbers and counts as short texts, with a true minus sign. */

/** Two or three significant digits, or a whole number: `0.0312`, `1.2e−7`, `18768`, `–` for what is not a number. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '–' : value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size < 1e-2 || size >= 1e6) return value.toExponential(1).replace('-', '−').replace('e+', 'e').replace('e-', 'e−');
  return String(size >= 1000 ? Math.round(value) : Number(value.toPrecision(3))).replace('-', '−');
}

/** A range of numbers, with as many digits as tell its ends apart: `0.4001 to 0.4003`; one number if they are equal. */
export function formatRange(low: number, high: number): string {
  if (low === high || Number.isNaN(low)) return formatNumber(low);
  const [least, most] = [formatNumber(low), formatNumber(high)];
  if (least !== most) return `${least} to ${most}`;
  const digits = Math.min(17, 2 + Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))));
  const precise = (value: number): string => String(Number(value.toPrecision(digits))).replaceAll('-', '−');
  return `${precise(low)} to ${precise(high)}`;
}

const THOUSANDS: readonly (readonly [number, string])[] = [
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** A count of things: `1 step`, `5,000 steps`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${wholeNumber(count)} ${count === 1 ? one : several}`;
}

/** A whole number with its thousands apart: `19,999`. */
export function wholeNumber(value: number): string {
  return value.toLocaleString('en');
}

/** A step by its number, in the middle of a sentence: `step 19,999`. */
export function stepName(step: number): string {
  return `step ${wholeNumber(step)}`;
}

/** A count, short: `73.9k`. */
export function formatCount(count: number): string {
  const rounded = Number(count.toPrecision(3));
  const [size, suffix] = THOUSANDS.find(([least]) => rounded >= least) ?? [1, ''];
  return size === 1 ? String(Math.round(count)) : `${Number((rounded / size).toPrecision(3))}${suffix}`;
}

const BYTES: readonly (readonly [number, string])[] = [
  [1e12, 'TB'],
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
];

/** An amount of memory with three digits, in powers of 1000: `318 kB`, `12 bytes`. */
export function formatBytes(bytes: number): string {
  const rounded = Number(bytes.toPrecision(3));
  const [size, unit] = BYTES.find(([least]) => rounded >= least) ?? [1, bytes === 1 ? 'byte' : 'bytes'];
  return `${Number((rounded / size).toPrecision(3))} ${unit}`;
}

/** A number that Python has written, as it is written here: `-1.2e-05` as `−1.2e−5`. */
export function fromPython(text: string): string {
  return text.replace(/e\+?(-?)0*(\d)/, 'e$1$2').replaceAll('-', '−');
}
