/** How far apart two histograms are, as `torchgraph_explorer/histogram/distance.py` works it out. */

import {lowerEdge, upperEdge} from '../histogram/buckets';
import {total, type Histogram} from '../histogram/histogram';

/**
 * From 0 (the same) to 1: the Wasserstein distance, how far the elements of one have to be moved on average to become the
 * other's, divided by the sum of both mean magnitudes. 1/3 where one tensor is twice the other. NaN without finite elements.
 */
export function distance(one: Histogram, other: Histogram): number {
  const [p, q] = [sharesOf(one), sharesOf(other)];
  if (p.size === 0 || q.size === 0) return NaN;
  const buckets = [...new Set([...p.keys(), ...q.keys()])].sort((a, b) => a - b);
  let [moved, after] = [0, 0];
  buckets.forEach((bucket, i) => {
    const [low, high] = [lowerEdge(bucket), upperEdge(bucket)];
    const before = after;
    after += (p.get(bucket) ?? 0) - (q.get(bucket) ?? 0);
    moved += (high - low) * meanMagnitude(before, after);
    if (i + 1 < buckets.length) moved += Math.abs(after) * (lowerEdge(buckets[i + 1]!) - high);
  });
  const magnitude = meanOf(p) + meanOf(q);
  return magnitude > 0 ? Math.min(1, moved / magnitude) : 0;
}

type Shares = ReadonlyMap<number, number>;

function sharesOf(histogram: Histogram): Shares {
  const all = total(histogram);
  const shares = new Map<number, number>();
  for (let i = 0; i < histogram.counts.length; i++) {
    const bucket = histogram.buckets[i]!;
    shares.set(bucket, (shares.get(bucket) ?? 0) + histogram.counts[i]! / all);
  }
  return shares;
}

/** The mean magnitude of the elements. */
function meanOf(shares: Shares): number {
  let mean = 0;
  for (const [bucket, share] of shares) mean += bucket === 0 ? 0 : share * Math.abs((lowerEdge(bucket) + upperEdge(bucket)) / 2);
  return mean;
}

/** The mean of the magnitude of what goes in a straight line from `start` to `end`. */
function meanMagnitude(start: number, end: number): number {
  const both = Math.abs(start) + Math.abs(end);
  if (both === 0) return 0;
  return start * end >= 0 ? both / 2 : (start ** 2 + end ** 2) / (2 * both);
}
