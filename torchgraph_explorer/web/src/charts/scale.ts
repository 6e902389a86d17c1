/** Value axes: from a value to its position between the axis' ends, and back; and the ticks of an axis. */

import {ticks as roundNumbers} from 'd3-array';

import {axisNumber} from './format';
import {clamp, quantiles, sumOf, type Bounds} from '../histogram/histogram';
import {lacksHistograms, rowOfEntry} from '../history';
import type {SeriesHistory} from '../api/types';

export type ScaleKind = 'linear' | 'symlog';

/** A value axis. Positions run from 0 at its low end to 1 at its high end, and beyond for values outside. */
export interface ValueScale extends Bounds {
  kind: ScaleKind;
  position(value: number): number;
  valueAt(position: number): number;
}

/** An axis with equal steps of value. */
export function linearScale({low, high}: Bounds): ValueScale {
  const length = high - low;
  return {
    kind: 'linear',
    low,
    high,
    position: (value) => (value - low) / length,
    valueAt: (position) => low + position * length,
  };
}

/** An axis that is linear nearer to zero than `linearBelow` and logarithmic beyond, in both directions. */
export function symlogScale({low, high}: Bounds, linearBelow: number): ValueScale {
  const bend = (value: number) => Math.sign(value) * Math.log1p(Math.abs(value) / linearBelow);
  const unbend = (bent: number) => Math.sign(bent) * Math.expm1(Math.abs(bent)) * linearBelow;
  const from = bend(low);
  const length = bend(high) - from;
  return {
    kind: 'symlog',
    low,
    high,
    position: (value) => (bend(value) - from) / length,
    valueAt: (position) => unbend(from + position * length),
  };
}

/** The widest part of a symmetric logarithmic axis, in powers of ten; more would make the strip a picture of dust. */
const DECADES = 9;

/** Where a symlog axis for this history turns linear: below nine tenths of its non-zero magnitudes. */
export function linearBelow(history: SeriesHistory, {low, high}: Bounds): number {
  const reach = Math.max(Math.abs(low), Math.abs(high));
  if (lacksHistograms(history)) return smallestMean(history, reach);
  const all = sumOf([{buckets: history.buckets.map(Math.abs), counts: history.counts}]);
  const zero = all.buckets[0] === 0 ? 1 : 0;
  const nonZero = {buckets: Array.from(all.buckets).slice(zero), counts: Array.from(all.counts).slice(zero)};
  const [tenth] = quantiles(nonZero, [0.1], {low: reach * 10 ** -DECADES, high: reach / 10});
  return Number.isFinite(tenth) && tenth! > 0 ? tenth! : reach / 10;
}

/** Without histograms: the smallest mean magnitude of a frame. */
function smallestMean(history: SeriesHistory, reach: number): number {
  const sizes = Array.from(history.frame, (_, entry) => rowOfEntry(history, entry).absolute_mean).filter((size) => size > 0);
  return clamp(Math.min(...sizes), reach * 10 ** -DECADES, reach / 10);
}

/** The ends of equally tall rows, `[rows + 1]`, from the low end up. */
export function rowEdges(scale: ValueScale, rows: number): Float64Array {
  const edges = Float64Array.from({length: rows + 1}, (_, row) => scale.valueAt(row / rows));
  edges[0] = scale.low;
  edges[rows] = scale.high;
  return edges;
}

/** The row of a value on the axis; -1 below it, `rows` above. The top row holds the high end too. */
export function rowOf(scale: ValueScale, rows: number, value: number): number {
  if (value < scale.low) return -1;
  if (value > scale.high) return rows;
  return Math.min(rows - 1, Math.max(0, Math.floor(scale.position(value) * rows)));
}

/** Round values on the axis, ascending, about `count` of them. */
export function valueTicks(scale: ValueScale, count: number): number[] {
  if (scale.kind === 'linear') return roundNumbers(scale.low, scale.high, Math.max(1, count));
  return spaced(scale, landmarks(scale), 1 / (count + 1)).sort((a, b) => a - b);
}

/** Zero first, then the powers of ten by falling magnitude, then fives and twos; plain round numbers if there are none. */
function landmarks(scale: ValueScale): number[] {
  const largest = Math.floor(Math.log10(Math.max(Math.abs(scale.low), Math.abs(scale.high))));
  const exponents = Array.from({length: DECADES + 2}, (_, i) => largest - i);
  const magnitudes = [1, 5, 2].flatMap((digit) => exponents.map((exponent) => Number(`${digit}e${exponent}`)));
  const found = [0, ...magnitudes.flatMap((magnitude) => [magnitude, -magnitude])];
  const inside = found.filter((value) => value >= scale.low && value <= scale.high);
  return inside.length > 0 ? inside : roundNumbers(scale.low, scale.high, 3);
}

/** Those of `values`, the earlier ones preferred, that stand at least `gap` apart. */
function spaced(scale: ValueScale, values: readonly number[], gap: number): number[] {
  const kept: number[] = [];
  for (const value of values) {
    const position = scale.position(value);
    if (kept.every((other) => Math.abs(scale.position(other) - position) >= gap)) kept.push(value);
  }
  return kept;
}

/** A value as it is written on the axis: with the digits that tell it from its neighbours there. */
export function scaleNumber(value: number, {kind, low, high}: ValueScale): string {
  return axisNumber(value, kind === 'linear' ? high - low : Math.abs(value));
}
