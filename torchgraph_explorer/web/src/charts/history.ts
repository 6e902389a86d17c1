/** Reading one series over the run: the columns that `api/history` answers, entry by entry. */

import {STATISTICS, type SeriesHistory} from '../api/types';
import {rowAt, type Row} from '../state/measures';
import type {Bounds, Histogram} from './buckets';

// nan, +inf and -inf stand side by side, as do min and max.
const NAN = STATISTICS.indexOf('nan');
const MIN = STATISTICS.indexOf('min');

/** An entry's statistics, by name. */
export function rowOfEntry(history: SeriesHistory, entry: number): Row {
  return rowAt(history.statistics, entry);
}

/** The least that an entry's statistics were at a frame, and the most. */
export function rangeOfEntry({lowest, highest}: SeriesHistory, entry: number): [lowest: Row, highest: Row] {
  return [rowAt(lowest, entry), rowAt(highest, entry)];
}

/** An entry's histogram, without copying. */
export function histogramOf(history: SeriesHistory, entry: number): Histogram {
  const from = history.offsets[entry]!;
  const to = history.offsets[entry + 1]!;
  return {buckets: history.buckets.subarray(from, to), counts: history.counts.subarray(from, to)};
}

/** An entry's smallest and largest element; NaN when it has none. */
export function boundsOf(history: SeriesHistory, entry: number): Bounds {
  return {low: cell(history, entry, MIN), high: cell(history, entry, MIN + 1)};
}

/** How many of an entry's elements are NaN or infinite. */
export function nonfiniteOf(history: SeriesHistory, entry: number): number {
  return cell(history, entry, NAN) + cell(history, entry, NAN + 1) + cell(history, entry, NAN + 2);
}

/** The entry in which a frame of the model is; -1 when the series has none there. */
export function entryOf({frame: frames, last}: SeriesHistory, frame: number): number {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle]! <= frame) low = middle + 1;
    else high = middle;
  }
  return low > 0 && last[low - 1]! >= frame ? low - 1 : -1;
}

/** Several frames are merged in the entry. */
export function isMerged({merged}: SeriesHistory, entry: number): boolean {
  return (merged[entry] ?? 1) > 1;
}

/** Which steps an entry stands for: `steps 400–419, merged`; null when it is one. */
export function mergedText(history: SeriesHistory, entry: number, steps: ArrayLike<number>): string | null {
  if (!isMerged(history, entry)) return null;
  const [first, last] = [steps[history.frame[entry]!], steps[history.last[entry]!]];
  return `steps ${first?.toLocaleString('en')}–${last?.toLocaleString('en')}, merged`;
}

function cell({statistics}: SeriesHistory, entry: number, column: number): number {
  return statistics[entry * STATISTICS.length + column] ?? NaN;
}
