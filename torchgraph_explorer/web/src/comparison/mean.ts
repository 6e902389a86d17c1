/** Several runs as one: their mean, and how far they are spread around it. */

import {QUANTILES} from '../histogram/histogram';
import type {RunsPoint} from '../charts/draw/mean';
import type {Scene} from '../charts/scene';

interface Curve {
  xs: readonly number[];
  values: readonly number[];
}

/** Means over runs: of the line's statistic, or of the medians that bands have. Runs that end early are left out after their end. */
export function meanOfRuns(scenes: readonly Scene[]): RunsPoint[] {
  const curves = scenes.map(curveOf).filter(({xs}) => xs.length > 0);
  const longest = curves.reduce<Curve | null>((best, one) => (best !== null && best.xs.length >= one.xs.length ? best : one), null);
  if (longest === null) return [];
  return longest.xs.map((x) => {
    const values = curves.flatMap((curve) => valueAt(curve, x));
    return {x, ...spreadOf(values)};
  });
}

function spreadOf(values: readonly number[]): Omit<RunsPoint, 'x'> {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const std = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
  return {mean, std, low: Math.min(...values), high: Math.max(...values), runs: values.length};
}

function curveOf({content, columns, positions}: Scene): Curve {
  if (content.mode === 'line') {
    const points = content.lines.flat();
    return {xs: points.map(({frame}) => positions.middles[frame]!), values: points.map(({value}) => value)};
  }
  if (content.mode !== 'bands') return {xs: [], values: []};
  const points = content.bands.flat();
  return {
    xs: points.map(({column}) => (columns.left[column]! + columns.right[column]!) / 2),
    values: points.map(({values}) => values[QUANTILES.indexOf(0.5)]!),
  };
}

/** The value nearest to a pixel; none beyond the curve's ends. */
function valueAt({xs, values}: Curve, x: number): number[] {
  const room = xs.length > 1 ? (xs.at(-1)! - xs[0]!) / (xs.length - 1) : 1;
  if (x < xs[0]! - room || x > xs.at(-1)! + room) return [];
  let [low, high] = [0, xs.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  const isBefore = low > 0 && x - xs[low - 1]! < xs[low]! - x;
  return [values[isBefore ? low - 1 : low]!];
}
