/** Which values a strip shows: all of them, or all but the most extreme. */

import type {SeriesHistory} from '../api/types';
import type {Bounds} from '../histogram/histogram';
import {trimmed} from '../histogram/trimmed';
import {boundsOf, hasHistogram, histogramOf} from '../history';

/** From the smallest to the largest element of all frames; null when no frame has a finite element. */
export function fullExtent(history: SeriesHistory): Bounds | null {
  let low = Infinity;
  let high = -Infinity;
  for (let entry = 0; entry < history.frame.length; entry++) {
    const bounds = boundsOf(history, entry);
    if (bounds.low < low) low = bounds.low;
    if (bounds.high > high) high = bounds.high;
  }
  return low <= high ? {low, high} : null;
}

/** Of float32: what is smaller is a rest of the bucket of the zeros. */
const SMALLEST_NORMAL = 2 ** -126;

/** Room that makes up for what a steady drift loses when a tenth of its points is taken as extreme. */
const DRIFT = 1 / 8;

/**
 * Where the elements lie if in each frame the proportion `reject` that is farthest from the frame's median is left out,
 * and then the frames that are most extreme.
 *
 * Distance from the median, not a share cut off at each end: a ReLU's output keeps its zeros and loses only its long tail.
 * Frame by frame, not all frames pooled: a series that drifts away stays in the picture, and a single frame that explodes
 * does not squash the others. Where nothing but zeros is left, as behind a dropout of nearly all, it is the full extent.
 * Null when no frame has a finite element.
 */
export function robustExtent(history: SeriesHistory, reject: number): Bounds | null {
  const usual = extentOfEnds(endsOf(history, reject), reject);
  const isZero = usual !== null && Math.max(-usual.low, usual.high) < SMALLEST_NORMAL;
  return isZero ? fullExtent(history) : usual;
}

/** The extent of what lies between the ends of entries. */
export function extentOfEnds(ends: Float64Array, reject: number): Bounds | null {
  return usualExtent(ends, {reject: Math.max(0, reject), room: DRIFT});
}

const known = new WeakMap<SeriesHistory, {reject: number; ends: Float64Array}>();

/** Where each entry's elements lie without the proportion `reject` that is farthest from its median: low, high, low, high, … */
export function endsOf(history: SeriesHistory, reject: number): Float64Array {
  const before = known.get(history);
  if (before?.reject === reject) return before.ends;
  const ends = new Float64Array(2 * history.frame.length);
  for (let entry = 0; entry < history.frame.length; entry++) {
    const bounds = boundsOf(history, entry);
    const {low, high} = reject > 0 && hasHistogram(history, entry) ? trimmed(histogramOf(history, entry), bounds, reject) : bounds;
    ends.set([low, high], 2 * entry);
  }
  known.set(history, {reject, ends});
  return ends;
}

/**
 * An axis' ends for an extent: rounded outwards to two digits of its length, so that a live strip does not tremble, and
 * opened around a constant. Without any value, the unit interval.
 */
export function axisExtent(extent: Bounds | null): Bounds {
  if (extent === null) return {low: 0, high: 1};
  const {low, high} = extent;
  if (low === high) return aroundConstant(low);
  const unit = 10 ** (Math.floor(Math.log10(high - low)) - 1);
  if (!Number.isFinite(unit) || unit === 0) return extent;
  return {low: tidy(Math.floor(low / unit) * unit), high: tidy(Math.ceil(high / unit) * unit)};
}

function aroundConstant(value: number): Bounds {
  const reach = value === 0 ? 1 : Math.abs(value) / 10;
  return {low: value - reach, high: value + reach};
}

/** Takes off the noise of floating point: 0.30000000000000004 is 0.3. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

/**
 * The extent of numbers over time without the proportion that is most extreme, but with some room at each end: a share of
 * the remaining length, as far as there are numbers. Null without any finite number.
 */
export function usualExtent(values: Iterable<number>, {reject, room}: {reject: number; room: number}): Bounds | null {
  const sorted = Float64Array.from([...values].filter(Number.isFinite)).sort();
  if (sorted.length === 0) return null;
  const last = sorted.length - 1;
  const skipped = Math.floor((reject / 2) * last);
  const [low, high] = [sorted[skipped]!, sorted[last - skipped]!];
  const more = room * (high - low);
  return {low: Math.max(sorted[0]!, low - more), high: Math.min(sorted[last]!, high + more)};
}
