/** Where frames and steps stand on the time bar, as shares of its length from 0 to 1: as on the time axis of the charts. */

import type {TimeAxis} from '../../charts/timeAxis';

export interface BarPlaces {
  /** Of each frame. */
  shares: Float64Array;
  /** Of a number on the axis; below 0 and above 1 for what lies before the first frame and after the last. */
  shareOf: (value: number) => number;
}

/** Frames that are not on the axis stand between their neighbours; all are evenly spread where the axis tells nothing apart. */
export function barPlaces({values}: Pick<TimeAxis, 'values'>): BarPlaces {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const last = Math.max(1, values.length - 1);
  if (!(low < high)) return {shares: Float64Array.from(values, (_, frame) => frame / last), shareOf: () => NaN};
  const shareOf = (value: number): number => (value - low) / (high - low);
  return {shares: withoutGaps(values.map(shareOf)), shareOf};
}

function withoutGaps(shares: Float64Array): Float64Array {
  let before = -1;
  for (let frame = 0; frame <= shares.length; frame++) {
    if (frame < shares.length && Number.isNaN(shares[frame])) continue;
    const [from, to] = [before < 0 ? 0 : shares[before]!, frame < shares.length ? shares[frame]! : 1];
    for (let gap = before + 1; gap < frame; gap++) shares[gap] = from + ((to - from) * (gap - before)) / (frame - before);
    before = frame;
  }
  return shares;
}

/** The share of a position among the frames, which may lie between two of them. */
export function shareAt(shares: ArrayLike<number>, position: number): number {
  const last = shares.length - 1;
  const low = Math.max(0, Math.min(last - 1, Math.floor(position)));
  if (last < 1) return 0;
  return shares[low]! + (position - low) * (shares[low + 1]! - shares[low]!);
}

/** The frame nearest to a share, the latest of several. */
export function frameNear(shares: ArrayLike<number>, share: number): number {
  let best = 0;
  for (let frame = 1; frame < shares.length; frame++) {
    if (Math.abs(shares[frame]! - share) <= Math.abs(shares[best]! - share)) best = frame;
  }
  return best;
}

/** How many frames beside `frame` are within so much of the bar. */
export function framesWithin(shares: ArrayLike<number>, frame: number, reach: number): number {
  let count = 0;
  while (count < shares.length && [frame - count - 1, frame + count + 1].some((one) => Math.abs((shares[one] ?? Infinity) - shares[frame]!) <= reach)) {
    count++;
  }
  return count;
}
