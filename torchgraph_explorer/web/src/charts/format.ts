/** Numbers as short texts, with a true minus sign. */

import {formatCount, formatNumber, wholeNumber} from '../numberText';

/** Numbers as large as this are written without an exponent on an axis, so that 0.003 is not 3e−3 between 0.0029 and 0.0032. */
const LEAST_PLAIN = 1e-3;

/** A value on an axis of a given length: as many digits as tell it from its neighbours. `0.0123`, `−1.5`, `2e−7`. */
export function axisNumber(value: number, length: number): string {
  if (value === 0) return '0';
  const magnitude = Math.abs(value);
  const unit = Math.floor(Math.log10(length > 0 ? length : magnitude)) - 1;
  const isPlain = magnitude < 1e5 && (unit > -5 || magnitude >= LEAST_PLAIN);
  return (isPlain ? plain(value, unit) : exponential(value, unit)).replaceAll('-', '−');
}

/** The same with as many digits as `fits` has room for, one at least. */
export function axisNumberThat(fits: (text: string) => boolean, value: number, length: number): string {
  const oneDigit = axisNumber(value, 10 * Math.abs(value));
  const longer = [length, 10 * length, 100 * length].filter((one) => one < 10 * Math.abs(value));
  return longer.map((one) => axisNumber(value, one)).find(fits) ?? (longer.length > 0 ? oneDigit : axisNumber(value, length));
}

function plain(value: number, unit: number): string {
  return String(Number(value.toFixed(Math.max(0, -unit))));
}

function exponential(value: number, unit: number): string {
  const digits = Math.floor(Math.log10(Math.abs(value))) - unit;
  const [mantissa, exponent] = value.toExponential(Math.min(Math.max(digits, 0), 3)).split('e') as [string, string];
  return `${Number(mantissa)}e${exponent.replace('+', '')}`;
}

/** The steps of an axis: whole with thousands apart, or short if some are long and three digits tell each of them exactly. */
export function stepNumbers(steps: readonly number[]): string[] {
  const isShort = steps.some((step) => step >= 1e5) && steps.every((step) => step >= 0 && Number(step.toPrecision(3)) === step);
  return steps.map(isShort ? formatCount : inFull);
}

/** The clock values of an axis: short if that tells each of them exactly, else in full with thousands apart. */
export function clockNumbers(values: readonly number[]): string[] {
  const areApart = values.some((value) => Math.abs(value) >= 1000 && Math.abs(value) < 1e6);
  const isShort = !areApart && values.every((value) => Number(formatNumber(value).replaceAll('−', '-')) === value);
  return values.map(isShort ? formatNumber : inFull);
}

/** One clock value, as of an epoch: `12,345`, `6.21`. */
export function clockNumber(value: number): string {
  if (Math.abs(value) < 1000) return formatNumber(value);
  return value.toLocaleString('en', {maximumFractionDigits: 1}).replaceAll('-', '−');
}

function inFull(value: number): string {
  return value.toLocaleString('en', {maximumFractionDigits: 20}).replaceAll('-', '−');
}

/** A count that may be a fraction, because a bucket was spread over rows. */
export function aboutCount(count: number): string {
  if (count === 0) return '0';
  if (count < 1) return '< 1';
  const whole = wholeNumber(Math.round(count));
  return Number.isInteger(count) ? whole : `≈ ${whole}`;
}

/** A proportion: `12 %`, `0.03 %`; `100 %` only if it is all. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return '–';
  const share = (part / whole) * 100;
  if (share > 99.9 && part < whole) return '> 99.9 %';
  return `${Number(share.toPrecision(share < 1 ? 1 : 2))} %`;
}

/** A value with all its digits: `0.6931471805599453`, `−1e−7`, `NaN`, `−∞`. */
export function exactNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  return String(value).replace('e+', 'e').replaceAll('-', '−');
}
