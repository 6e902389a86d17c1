/** A scalar as a curve: where its points are, in shares of the axis and of the height. */

import type {ScalarValues} from '../api/types';
import type {Place} from './timePlaces';

export interface CurvePoint {
  /** Number of the entry. */
  entry: number;
  /** The numbers on the time axis of its first and last step. */
  from: number;
  to: number;
}

/** The entries of a scalar on a time axis, in the order of the axis; those that are not on it are left out. */
export function curvePoints({step, last, time}: ScalarValues, place: Place): CurvePoint[] {
  const found: CurvePoint[] = [];
  for (let entry = 0; entry < step.length; entry++) {
    const from = place(step[entry]!, time[entry]!);
    if (Number.isNaN(from)) continue;
    const to = place(last[entry]!, time[entry]!);
    found.push({entry, from, to: Number.isNaN(to) ? from : to});
  }
  return found.sort((one, other) => one.from - other.from || one.entry - other.entry);
}

/** A value's position from 0, the low end, to 1; NaN for one that cannot be on the scale. */
export interface CurveScale {
  low: number;
  high: number;
  kind: 'linear' | 'log';
  position(value: number): number;
  valueAt(position: number): number;
}

/**
 * The scale that holds all finite values, positive ones where it is logarithmic; null without any. Of a `share` below 1, the
 * largest values are beyond it.
 */
export function curveScale({low: lows, high: highs, value}: Pick<ScalarValues, 'low' | 'high' | 'value'>, kind: 'linear' | 'log', share = 1): CurveScale | null {
  let low = Infinity;
  for (let entry = 0; entry < lows.length; entry++) {
    const least = kind === 'log' && !(lows[entry]! > 0) ? value[entry]! : lows[entry]!;
    if (least < low && (kind === 'linear' || least > 0)) low = least;
  }
  const sorted = highs.filter(Number.isFinite).sort();
  let high = sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
  if (!(low <= high)) return null;
  if (kind === 'log') return logScale(low, high);
  if (low === high) {
    const room = Math.abs(low) * 0.05 || 1;
    [low, high] = [low - room, high + room];
  }
  const length = high - low;
  if (!Number.isFinite(length)) return halvedScale(low, high);
  return {low, high, kind, position: (value) => (value - low) / length, valueAt: (position) => low + position * length};
}

const WIDE = 20;
const USUAL = 0.99;

/** The scale that holds every value: logarithmic also where the largest ones would press all others flat, if none is below 0. */
export function wholeScale(values: Pick<ScalarValues, 'low' | 'high' | 'value'>, kind: 'linear' | 'log'): CurveScale | null {
  const all = curveScale(values, kind);
  const usual = curveScale(values, kind, USUAL);
  const isFlat = all !== null && usual !== null && all.kind === 'linear' && all.high - all.low > WIDE * (usual.high - usual.low);
  return isFlat && all.low > 0 ? curveScale(values, 'log') : all;
}

/** The values of several runs, for a scale that holds all. */
export function joinedValues(all: readonly ScalarValues[]): Pick<ScalarValues, 'low' | 'high' | 'value'> {
  if (all.length === 1) return all[0]!;
  const of = (name: 'low' | 'high' | 'value'): Float64Array => Float64Array.from(all.flatMap((one) => Array.from(one[name])));
  return {low: of('low'), high: of('high'), value: of('value')};
}

/** For values so large that their difference is no number. */
function halvedScale(low: number, high: number): CurveScale {
  const length = high / 2 - low / 2;
  return {
    ...{low, high, kind: 'linear'},
    position: (value) => (value / 2 - low / 2) / length,
    valueAt: (position) => low + 2 * position * length,
  };
}

function logScale(low: number, high: number): CurveScale {
  const room = low === high ? 0.1 : 0;
  const from = Math.log10(low) - room;
  const length = Math.log10(high) + room - from;
  return {
    ...{low: 10 ** from, high: 10 ** (from + length), kind: 'log'},
    position: (value) => (value > 0 ? (Math.log10(value) - from) / length : NaN),
    valueAt: (position) => 10 ** (from + position * length),
  };
}

/** Where a curve is drawn. */
export interface CurveBox {
  width: number;
  height: number;
  /** The numbers at the ends of the time axis. */
  left: number;
  right: number;
}

export interface CurvePaths {
  /** The line through the values, with gaps where there is none. */
  line: string;
  /** From the least to the largest value of merged steps. */
  range: string;
  /** Pixels at which something was NaN or infinite. */
  bad: number[];
  /** Values that stand alone between gaps, as x and y. */
  dots: [number, number][];
}

/** A curve as SVG paths: at each pixel from the least to the largest value there, so that no spike is lost. */
export function curvePaths(values: ScalarValues, points: readonly CurvePoint[], scale: CurveScale, box: CurveBox): CurvePaths {
  const xOf = (place: number): number => (box.right > box.left ? ((place - box.left) / (box.right - box.left)) * box.width : box.width / 2);
  const yOf = (value: number): number => (1 - Math.max(0, Math.min(1, scale.position(value)))) * box.height;
  const paths: CurvePaths = {line: '', range: '', bad: [], dots: []};
  let piece: [number, number][] = [];
  const end = (): void => {
    if (piece.length === 1) paths.dots.push(piece[0]!);
    else if (piece.length > 1) paths.line += `M${piece.map(pair).join('L')}`;
    piece = [];
  };
  for (const {entry, from, to} of points) {
    const x = xOf((from + to) / 2);
    if (values.bad[entry]! > 0) addBad(paths.bad, x);
    const position = scale.position(values.value[entry]!);
    if (!Number.isFinite(values.value[entry]!) || Number.isNaN(position)) {
      end();
      continue;
    }
    piece.push([x, yOf(values.value[entry]!)]);
    const [low, high] = [values.low[entry]!, values.high[entry]!];
    if (low < high) paths.range += `M${pair([x, yOf(high)])}V${short(Number.isNaN(scale.position(low)) ? box.height : yOf(low))}`;
  }
  end();
  return paths;
}

/** Marks that would touch are one. */
function addBad(bad: number[], x: number): void {
  if (bad.length === 0 || x - bad[bad.length - 1]! >= 2) bad.push(x);
}

function pair([x, y]: [number, number]): string {
  return `${short(x)} ${short(y)}`;
}

function short(pixels: number): string {
  return String(Math.round(pixels * 10) / 10);
}

/** The entries within `reach` of a number on the time axis, in order; else the nearest; none without any. */
export function entriesAt(points: readonly CurvePoint[], place: number, reach: number): number[] {
  const near = points.filter(({from, to}) => from - reach <= place && place <= to + reach);
  if (near.length > 0) return near.map(({entry}) => entry);
  const distance = ({from, to}: CurvePoint): number => Math.max(from - place, place - to);
  const nearest = points.reduce<CurvePoint | null>((best, one) => (best !== null && distance(best) <= distance(one) ? best : one), null);
  return nearest === null ? [] : [nearest.entry];
}

/** Several entries as one, with the mean of all their values. */
export function mergedEntry(values: ScalarValues, entries: readonly number[]): ScalarValues {
  const of = (column: ArrayLike<number>): number[] => entries.map((entry) => column[entry]!);
  const [counts, bad] = [of(values.count), of(values.bad)];
  const [count, lost] = [sum(counts), sum(bad)];
  const shares = entries.map((entry, i) => (counts[i]! > bad[i]! ? (values.value[entry]! * (counts[i]! - bad[i]!)) / (count - lost) : 0));
  const value = entries.length === 1 ? values.value[entries[0]!]! : count > lost ? sum(shares) : NaN;
  const finite = (column: Float64Array): number[] => of(column).filter(Number.isFinite);
  return {
    ...{step: Float64Array.of(values.step[entries[0]!]!), time: Float64Array.of(values.time[entries[0]!]!)},
    ...{value: Float64Array.of(value), last: Float64Array.of(values.last[entries.at(-1)!]!)},
    ...{count: Uint32Array.of(count), bad: Uint32Array.of(lost)},
    ...{low: Float64Array.of(least(finite(values.low), Math.min)), high: Float64Array.of(least(finite(values.high), Math.max))},
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function least(numbers: readonly number[], of: (...numbers: number[]) => number): number {
  return numbers.length === 0 ? NaN : of(...numbers);
}
