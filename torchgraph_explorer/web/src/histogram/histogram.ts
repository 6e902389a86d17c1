/** Histograms in the fixed buckets: added up, and read. */

import {LAST_BUCKET, lowerEdge, upperEdge} from './buckets';

/** The quantiles that the bands draw: three nested pairs around the median. */
export const QUANTILES = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99] as const;

/** The non-empty buckets of one histogram, ascending, with at least one element in each. */
export interface Histogram {
  buckets: ArrayLike<number>;
  counts: ArrayLike<number>;
}

/** The smallest and largest element of a histogram; no element lies outside. */
export interface Bounds {
  low: number;
  high: number;
}

/** How many elements a histogram holds. */
export function total({counts}: Histogram): number {
  let sum = 0;
  for (let i = 0; i < counts.length; i++) sum += counts[i]!;
  return sum;
}

/** Several histograms added up. A bucket may also occur several times in one of them. */
export function sumOf(histograms: readonly Histogram[]): Histogram {
  const dense = new Float64Array(2 * LAST_BUCKET + 1);
  for (const {buckets, counts} of histograms) {
    for (let i = 0; i < counts.length; i++) dense[buckets[i]! + LAST_BUCKET]! += counts[i]!;
  }
  const filled = [...dense.keys()].filter((index) => dense[index]! > 0);
  return {buckets: filled.map((index) => index - LAST_BUCKET), counts: filled.map((index) => dense[index]!)};
}

/**
 * The values below which each ascending share of the elements lies; NaN for an empty histogram.
 *
 * Elements are taken as spread evenly within their bucket, so the error is at most one bucket: a quarter of an octave.
 */
export function quantiles(histogram: Histogram, shares: readonly number[], {low, high}: Bounds): number[] {
  const {buckets, counts} = histogram;
  if (counts.length === 0) return shares.map(() => NaN);
  const all = total(histogram);
  let at = 0;
  let before = 0;
  return shares.map((share) => {
    const wanted = share * all;
    while (at < counts.length - 1 && before + counts[at]! < wanted) before += counts[at++]!;
    const lower = lowerEdge(buckets[at]!);
    const inside = (wanted - before) / counts[at]!;
    return clamp(lower + inside * (upperEdge(buckets[at]!) - lower), low, high);
  });
}

/** The values that a bucket's elements may have, given the smallest and largest element. The zero bucket is a point. */
export function spanOf(bucket: number, {low, high}: Bounds): [number, number] {
  if (bucket === 0) return [0, 0];
  return [clamp(lowerEdge(bucket), low, high), clamp(upperEdge(bucket), low, high)];
}

/** `value`, or the nearer of the two bounds if it lies outside. */
export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
