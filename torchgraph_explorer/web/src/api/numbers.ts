/** Reads back what `server/page/numbers.py` wrote, with the same integers. */

import {ofFrames} from './frames';
import {arrayOf} from './pack';
import type {Packed} from './pack';
import {STATISTICS} from './types';
import type {SeriesHistory} from './types';

const FRACTION = 256;
const SLOWEST = 3;
const WIDTH = STATISTICS.length;
const COLUMN = Object.fromEntries(STATISTICS.map((name, i) => [name, i])) as Record<(typeof STATISTICS)[number], number>;

/** The numbers of one model. Series that share theirs have one history. */
export interface Numbers {
  series: number;
  frames: number;
  /** Does the series have something at the frame? */
  isPresent: (series: number, frame: number) => boolean;
  /** `[frames, 12]`; only rows of frames that are present mean something. */
  statistics: (series: number) => Float32Array;
  /** Of some of the frames, which are numbered from 0. */
  history: (series: number, frames: readonly number[]) => SeriesHistory;
}

/** The buckets of a history, and what was counted in each. */
interface Columns {
  /** Of the first bucket, among those of all histories. */
  start: Uint32Array;
  bucket: Int16Array;
  first: Float64Array;
  size: Uint8Array;
  /** Which one it is among the columns of its size. */
  rank: Uint32Array;
}

/** The arrays of a model that begin with `prefix`. Nothing is read before it is asked for. */
export function numbersOf(packed: Packed<unknown>, prefix: string, frames: number): Numbers {
  const array = <T>(name: string, type: new (...args: never[]) => T): T => arrayOf(packed, prefix + name, type);
  const planes = (name: string): Uint8Array[] => planesOf(packed, prefix + name);
  const [historyOf, present] = [array('history', Uint32Array), array('present', Uint8Array)];
  const tables = STATISTICS.map((name) => planes(`statistics.${name}`));
  const columns = columnsOf(array('columns', Uint32Array), array('buckets', Int16Array), array('sizes', Uint8Array), planes('first'));
  const residuals = once((size) => planes(`residuals.${size}`));
  const statistics = once((history) => readStatistics(tables, history, frames));
  const isPresent = (history: number, frame: number): boolean => present[history * frames + frame] === 1;
  const read = (history: number, kept: readonly number[]): SeriesHistory => {
    const shown = kept.filter((frame) => isPresent(history, frame));
    return ofFrames({
      frame: Uint32Array.from(kept.flatMap((frame, number) => (isPresent(history, frame) ? [number] : []))),
      statistics: rowsOf(statistics(history), shown),
      ...readHistograms(columns, residuals, {history, frames, shown}),
    });
  };
  return {
    series: historyOf.length,
    frames,
    isPresent: (series, frame) => isPresent(historyOf[series] as number, frame),
    statistics: (series) => statistics(historyOf[series] as number),
    history: (series, kept) => read(historyOf[series] as number, kept),
  };
}

function once<T>(read: (number: number) => T): (number: number) => T {
  const known = new Map<number, T>();
  return (number) => {
    const value = known.get(number) ?? read(number);
    known.set(number, value);
    return value;
  };
}

/** `name.0` with the lowest bytes, `name.1` and so on. */
function planesOf(packed: Packed<unknown>, name: string): Uint8Array[] {
  const found = [arrayOf(packed, `${name}.0`, Uint8Array)];
  while (packed.arrays.has(`${name}.${found.length}`)) found.push(arrayOf(packed, `${name}.${found.length}`, Uint8Array));
  return found;
}

/** A whole number of any size, which 0, 1, 2, 3, … stand for: 0, -1, 1, -2, … */
function numberAt(planes: readonly Uint8Array[], at: number): number {
  let number = 0;
  for (let byte = planes.length - 1; byte >= 0; byte--) number = number * 256 + ((planes[byte] as Uint8Array)[at] as number);
  return number % 2 === 1 ? -(number + 1) / 2 : number / 2;
}

function columnsOf(counts: Uint32Array, gaps: Int16Array, size: Uint8Array, first: readonly Uint8Array[]): Columns {
  const start = new Uint32Array(counts.length + 1);
  counts.forEach((count, history) => (start[history + 1] = (start[history] as number) + count));
  const columns = {start, bucket: gaps.slice(), first: new Float64Array(gaps.length), size, rank: new Uint32Array(gaps.length)};
  const ranks = new Uint32Array(256);
  for (let i = 0; i < gaps.length; i++) {
    const before = i === 0 ? 0 : i - 1;
    columns.bucket[i] = i === 0 ? (gaps[0] as number) : (columns.bucket[before] as number) + (gaps[i] as number);
    columns.first[i] = (columns.first[before] as number) + numberAt(first, i);
    const mine = size[i] as number;
    columns.rank[i] = ranks[mine] as number;
    ranks[mine] = (ranks[mine] as number) + 1;
  }
  return columns;
}

function readHistograms(
  columns: Columns,
  residuals: (size: number) => Uint8Array[],
  {history, frames, shown}: {history: number; frames: number; shown: readonly number[]},
): Pick<SeriesHistory, 'offsets' | 'buckets' | 'counts'> {
  const [start, stop] = [columns.start[history] as number, columns.start[history + 1] as number];
  const table = new Float64Array((stop - start) * frames);
  for (let column = start; column < stop; column++) {
    const planes = frames > 1 ? residuals(columns.size[column] as number) : [];
    const counts = table.subarray((column - start) * frames, (column - start + 1) * frames);
    readCounts(counts, columns.first[column] as number, planes, (columns.rank[column] as number) * (frames - 1));
  }
  const offsets = [0];
  const [buckets, counts]: [number[], number[]] = [[], []];
  for (const frame of shown) {
    for (let column = start; column < stop; column++) {
      const count = table[(column - start) * frames + frame] as number;
      if (count === 0) continue;
      buckets.push(columns.bucket[column] as number);
      counts.push(count);
    }
    offsets.push(counts.length);
  }
  return {offsets: Uint32Array.from(offsets), buckets: Int16Array.from(buckets), counts: Uint32Array.from(counts)};
}

/** One bucket's counts over the frames: what those before let one expect, and the difference. */
function readCounts(counts: Float64Array, first: number, planes: readonly Uint8Array[], from: number): void {
  counts[0] = first;
  let expected = first * FRACTION;
  for (let frame = 1; frame < counts.length; frame++) {
    const count = Math.floor(expected / FRACTION) + numberAt(planes, from + frame - 1);
    counts[frame] = count;
    expected += Math.floor((count * FRACTION - expected) / 2 ** pace(frame));
  }
}

function pace(frame: number): number {
  return Math.min(SLOWEST, Math.max(1, 31 - Math.clz32(frame + 1)));
}

/** `[frames, 12]`. Each is the one before and a difference of bits; the norm is what mean and deviation say, and one. */
function readStatistics(tables: readonly (readonly Uint8Array[])[], history: number, frames: number): Float32Array {
  const values = new Float32Array(frames * WIDTH);
  const bits = new Int32Array(values.buffer);
  const start = history * frames;
  for (let frame = 0; frame < frames; frame++) {
    const row = frame * WIDTH;
    for (let column = 0; column < WIDTH; column++) {
      const before = column === COLUMN.l2_norm ? expectedNorm(values, row) : frame === 0 ? 0 : (bits[row - WIDTH + column] as number);
      bits[row + column] = before + differenceAt(tables[column] as Uint8Array[], start + frame);
    }
  }
  return values;
}

function differenceAt(planes: readonly Uint8Array[], at: number): number {
  let bits = 0;
  for (let byte = planes.length - 1; byte >= 0; byte--) bits = (bits << 8) | ((planes[byte] as Uint8Array)[at] as number);
  return (bits >>> 1) ^ -(bits & 1);
}

const norm = new Float32Array(1);
const normBits = new Int32Array(norm.buffer);

function expectedNorm(values: Float32Array, row: number): number {
  const of = (column: number): number => values[row + column] as number;
  const finite = of(COLUMN.count) - of(COLUMN.nan) - of(COLUMN.positive_infinity) - of(COLUMN.negative_infinity);
  norm[0] = Math.sqrt((of(COLUMN.mean) * of(COLUMN.mean) + of(COLUMN.std) * of(COLUMN.std)) * finite);
  return Number.isFinite(norm[0]) ? (normBits[0] as number) : 0;
}

function rowsOf(statistics: Float32Array, frames: readonly number[]): Float32Array {
  const rows = new Float32Array(frames.length * WIDTH);
  frames.forEach((frame, i) => rows.set(statistics.subarray(frame * WIDTH, (frame + 1) * WIDTH), i * WIDTH));
  return rows;
}
