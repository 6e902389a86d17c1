/** Reading one series over the run: the columns that `api/history` answers, entry by entry. */

import {wholeNumber} from './numberText';
import {STATISTICS, type SeriesHistory} from './api/types';
import {rowAt, type Row} from './statistics';
import type {Bounds, Histogram} from './histogram/histogram';

// nan, +inf and -inf stand side by side, as do min and max.
const SAMPLED = STATISTICS.indexOf('sampled');
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

/** An entry has elements, and none of them is finite. */
export function isLost(history: SeriesHistory, entry: number): boolean {
  return cell(history, entry, SAMPLED) === 0 && nonfiniteOf(history, entry) > 0;
}

/** An entry has a histogram, or no finite element that one could be of. */
export function hasHistogram(history: SeriesHistory, entry: number): boolean {
  return history.offsets[entry] !== history.offsets[entry + 1] || !(cell(history, entry, SAMPLED) > 0);
}

/** There are finite elements, and no histogram of them was recorded: `watch(log="scalars")`. */
export function lacksHistograms(history: SeriesHistory): boolean {
  return history.counts.length === 0 && history.frame.some((_, entry) => !hasHistogram(history, entry));
}

/** What the elements of a row are, none of which is finite. */
export function whatIsLost(row: Row): string {
  return row.nan === 0 ? 'infinite' : row.positive_infinity + row.negative_infinity === 0 ? 'NaN' : 'NaN or infinite';
}

/** `all 2,048 NaN`, `all 12 infinite`, `all 40 NaN or infinite`. */
export function lostText(row: Row): string {
  return `all ${wholeNumber(row.count)} ${whatIsLost(row)}`;
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

/** The frame to tell of for the one on show: until the entries of frames that were recorded meanwhile have come, the last one before them. */
export function reached({until}: SeriesHistory, frame: number): number {
  return until === undefined ? frame : Math.min(frame, until - 1);
}

/** Several frames are merged in the entry. */
export function isMerged({merged}: SeriesHistory, entry: number): boolean {
  return (merged[entry] ?? 1) > 1;
}

/** Which steps an entry stands for: `steps 400–419, merged`; null when it is one. */
export function mergedText(history: SeriesHistory, entry: number, steps: ArrayLike<number>): string | null {
  if (!isMerged(history, entry)) return null;
  const [first, last] = [steps[history.frame[entry]!], steps[history.last[entry]!]];
  return `steps ${wholeNumber(first!)}–${wholeNumber(last!)}, merged`;
}

function cell({statistics}: SeriesHistory, entry: number, column: number): number {
  return statistics[entry * STATISTICS.length + column] ?? NaN;
}
