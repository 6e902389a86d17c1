/** Numbers as colours: signed ones diverge from zero, and what is not finite stands out. Pure. */

import {group} from 'd3-array';
import type {Bounds, Numbers, Summary, TensorPart, WantedPart} from '../api/tensors';

export type Rgb = readonly [red: number, green: number, blue: number];

/** Colours of a theme. */
export interface Shades {
  /** From the least to the largest, zero in the middle. */
  diverging: readonly Rgb[];
  /** From zero to the largest. */
  sequential: readonly Rgb[];
  nan: Rgb;
  positiveInfinity: Rgb;
  negativeInfinity: Rgb;
}

/** How values become places on a ramp: the least is 0, the largest is 1. */
export interface ValueScale {
  low: number;
  high: number;
  /** Zero is in the middle. */
  isSigned: boolean;
}

export type ScaleChoice = 'all' | 'typical' | 'facet';

/** Numbers that cannot be negative: they are shown from zero on. */
function isUnsigned(dtype: string): boolean {
  return dtype === 'bool' || dtype.startsWith('uint');
}

/** The answer has numbers that cannot be negative: standard deviations, largest magnitudes, and those of complex numbers. */
export function isMagnitude({what, part}: WantedPart, dtype: string): boolean {
  return what === 'std' || what === 'largest' || (what === 'values' && part === 'abs' && dtype.startsWith('complex'));
}

/** What a scale has to know of numbers. */
type Numbered = Pick<TensorPart, 'dtype' | 'isMagnitude'>;

/** One scale for a whole tensor. Where nothing is negative, as in attention, all colours are for what there is. */
export function scaleOf({low, high, typical}: Bounds, {dtype, isMagnitude: isAbsolute}: Numbered, choice: ScaleChoice): ValueScale {
  const [least, most] = [low ?? 0, high ?? 0];
  const largest = Math.max(Math.abs(least), Math.abs(most));
  const size = choice === 'typical' && typical !== null && typical > 0 ? typical : largest;
  const isNowhereNegative = least >= 0 && (most > 0 || dtype.startsWith('int'));
  return isUnsigned(dtype) || isNowhereNegative || isAbsolute ? {low: 0, high: size || 1, isSigned: false} : {low: -(size || 1), high: size || 1, isSigned: true};
}

/** The larger of both bounds. */
export function bothBounds(one: Bounds, other: Bounds): Bounds {
  const among = (name: keyof Bounds, of: (...numbers: number[]) => number): number | null => {
    const known = [one[name], other[name]].filter((value) => value !== null);
    return known.length === 0 ? null : of(...known);
  };
  return {low: among('low', Math.min), high: among('high', Math.max), typical: among('typical', Math.max)};
}

/** The scale of some of the values alone. */
export function scaleAmong(values: Iterable<number>, of: Numbered): ValueScale {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return scaleOf(low <= high ? {low, high, typical: null} : {low: null, high: null, typical: null}, of, 'all');
}

const STEPS = 256;

/** So many colours between the stops. */
export function rampOf(stops: readonly Rgb[], steps: number = STEPS): Rgb[] {
  return Array.from({length: steps}, (_, i) => {
    const at = (i / (steps - 1)) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    const [from, to] = [stops[left] as Rgb, stops[left + 1] as Rgb];
    return [0, 1, 2].map((part) => Math.round((from[part] as number) + ((to[part] as number) - (from[part] as number)) * (at - left))) as unknown as Rgb;
  });
}

/**
 * Where on its ramp a share of a scale is. From zero on, small values get most of the colours: of the weights of
 * attention, nearly all are far below the largest.
 */
export function placeOnRamp(share: number, isSigned: boolean): number {
  const within = Math.max(0, Math.min(1, share));
  return isSigned ? within : Math.sqrt(within);
}

/** The ramp for a legend, along which values are evenly spaced. */
export function gradientOf(ramp: readonly string[], isSigned: boolean): string {
  const last = ramp.length - 1;
  const percent = (i: number): number => 100 * (isSigned ? i / last : (i / last) ** 2);
  return `linear-gradient(to right, ${ramp.map((colour, i) => `${colour} ${percent(i)}%`).join(', ')})`;
}

/** Paints values as pixels. */
export function shader(shades: Shades, {low, high, isSigned}: ValueScale): (value: number) => Rgb {
  const ramp = rampOf(isSigned ? shades.diverging : shades.sequential);
  const length = high - low || 1;
  return (value) => {
    if (Number.isNaN(value)) return shades.nan;
    if (value === Infinity) return shades.positiveInfinity;
    if (value === -Infinity) return shades.negativeInfinity;
    return ramp[Math.round(placeOnRamp((value - low) / length, isSigned) * (STEPS - 1))] as Rgb;
  };
}

/** `#rrggbb` as bytes. */
export function rgbFrom(text: string): Rgb {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) || 0) as unknown as Rgb;
}

/** Facts of numbers, as the server gives them for all elements of a tensor. */
export function summaryOf(values: ArrayLike<number>): Summary {
  const found = {count: values.length, nan: 0, positive_infinity: 0, negative_infinity: 0};
  const good: number[] = [];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) found.nan += 1;
    else if (value === Infinity) found.positive_infinity += 1;
    else if (value === -Infinity) found.negative_infinity += 1;
    else good.push(value);
  }
  if (good.length === 0) return {...found, low: null, high: null, mean: null, std: null, typical: null};
  const mean = good.reduce((sum, value) => sum + value / good.length, 0);
  const std = Math.sqrt(good.reduce((sum, value) => sum + (value - mean) ** 2 / good.length, 0));
  const sizes = good.map(Math.abs).sort((a, b) => a - b);
  const [low, high] = good.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  return {...found, low, high, mean, std, typical: sizes[Math.floor(0.99 * (sizes.length - 1))] as number};
}

/** Of each category: how many of the values have it, and the mean of those that are finite. In the order of the largest mean. */
export function byCategory(values: ArrayLike<number>, categories: readonly string[]): {category: string; count: number; mean: number | null}[] {
  const found = group(categories.keys(), (i) => categories[i] as string);
  const rows = [...found].map(([category, own]) => ({category, count: own.length, mean: summaryOf(own.map((i) => values[i] as number)).mean}));
  return rows.sort((a, b) => (b.mean ?? Infinity) - (a.mean ?? Infinity));
}

/** `a - b`, element by element. */
export function differenceOf(a: Numbers, b: Numbers): Float64Array {
  return Float64Array.from(a, (value, i) => value - (b[i] as number));
}

/** Pearson's correlation of the pairs that are finite, and how many there are; NaN if one of the sides is constant. */
export function correlation(a: ArrayLike<number>, b: ArrayLike<number>): {r: number; pairs: number} {
  const pairs: [number, number][] = [];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a[i] as number, b[i] as number];
    if (Number.isFinite(x) && Number.isFinite(y)) pairs.push([x, y]);
  }
  const mean = (of: 0 | 1): number => pairs.reduce((sum, pair) => sum + pair[of] / pairs.length, 0);
  const [meanX, meanY] = [mean(0), mean(1)];
  const sum = (of: (x: number, y: number) => number): number => pairs.reduce((total, [x, y]) => total + of(x - meanX, y - meanY), 0);
  return {r: sum((x, y) => x * y) / Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y)), pairs: pairs.length};
}

/** A value with the digits that tell it from its neighbours in its type: of float32, `0.1` and not `0.10000000149011612`. */
export function shortest(value: number, dtype: string): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (dtype === 'bool') return value === 0 ? 'False' : 'True';
  const isSingle = /^(float32|float16|bfloat16|float8.*|complex64)$/.test(dtype);
  const digits = isSingle ? [6, 7, 8, 9].find((count) => Math.fround(Number(value.toPrecision(count))) === value) : undefined;
  return String(digits === undefined ? value : Number(value.toPrecision(digits))).replace('e+', 'e').replaceAll('-', '−');
}

/** A value with the four digits that one compares by eye; whole numbers, and the whole part of others below a million, in full. */
export function readable(value: number, dtype: string): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return shortest(value, dtype);
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) {
    const [digits, exponent] = value.toExponential(3).split('e') as [string, string];
    return `${Number(digits)}e${Number(exponent)}`.replaceAll('-', '−');
  }
  return String(size >= 1e4 ? Math.round(value) : Number(value.toPrecision(4))).replaceAll('-', '−');
}
