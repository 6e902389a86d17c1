/** Reading one series over the run: the columns that `api/history` answers, entry by entry. */

import {STATISTICS, type SeriesHistory} from '../api/types';
import {rowAt, type Row} from '../state/measures';
import type {Bounds, Histogram} from './buckets';

// nan, +inf and -inf stand side by side, as do min and max.
const NAN = STATISTICS.indexOf('nan');
const MIN = STATISTICS.indexOf('min');

/** A history that holds no frame yet. */
export function emptyHistory(): SeriesHistory {
  return {
    frame: new Uint32Array(0),
    statistics: new Float32Array(0),
    offsets: new Uint32Array(1),
    buckets: new Int16Array(0),
    counts: new Uint32Array(0),
  };
}

/** An entry's statistics, by name. */
export function rowOfEntry(history: SeriesHistory, entry: number): Row {
  return rowAt(history.statistics, entry);
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

/** The entry of a frame of the model; -1 when the series has none there. */
export function entryOf({frame: frames}: SeriesHistory, frame: number): number {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle]! < frame) low = middle + 1;
    else high = middle;
  }
  return frames[low] === frame ? low : -1;
}

function cell({statistics}: SeriesHistory, entry: number, column: number): number {
  return statistics[entry * STATISTICS.length + column] ?? NaN;
}
