/** Exponent buckets spread over the rows of a drawn histogram. */

import {LAST_BUCKET, lowerEdge, upperEdge} from './buckets';
import {spanOf, type Bounds, type Histogram} from './histogram';

/** One drawn histogram. Every element is in exactly one of the four fields. */
export interface RowCounts {
  /** Elements per row, lowest row first; fractions, since a bucket may straddle rows. */
  counts: Float64Array;
  /** Elements that are zero, when zero is on the axis; they belong to the row `zeroRow`. */
  zeros: number;
  /** Elements below and above the axis. */
  below: number;
  above: number;
}

/** An axis cut into rows, over which histograms are spread. */
export interface RowAxis {
  rows: number;
  /** Where rows begin, from the lowest up, and where the last one ends: `[rows + 1]`. */
  edges: Float64Array;
  /** The row of a value; -1 below the axis, `rows` above it. */
  rowOf: (value: number) => number;
  /** The row that holds zero; -1 when zero is below the axis, `rows` when it is above. */
  zeroRow: number;
  /** Elements are whole numbers, so they stand on those and not between them. */
  isWhole: boolean;
}

/** Rows without elements. */
export function emptyRows(axis: RowAxis): RowCounts {
  return {counts: new Float64Array(axis.rows), zeros: 0, below: 0, above: 0};
}

/** A histogram spread over the rows of an axis, in proportion to how far each bucket overlaps each row. */
export function rebin(histogram: Histogram, bounds: Bounds, axis: RowAxis): RowCounts {
  const rows = emptyRows(axis);
  addTo(rows, histogram, bounds, axis);
  return rows;
}

/** Adds a histogram to rows that may already hold others. `bounds` are its smallest and largest element. */
export function addTo(rows: RowCounts, {buckets, counts}: Histogram, bounds: Bounds, axis: RowAxis): void {
  const overlaps = overlapsOf(axis);
  for (let i = 0; i < counts.length; i++) {
    const bucket = buckets[i]!;
    const points = axis.isWhole ? wholeNumbersIn(bucket, bounds) : null;
    if (bucket === 0) addZeros(rows, counts[i]!, axis);
    else if (points !== null) points.forEach((value) => addToRow(rows, axis.rowOf(value), counts[i]! / points.length));
    else if (lowerEdge(bucket) >= bounds.low && upperEdge(bucket) <= bounds.high) addWhole(rows, overlaps, {bucket, count: counts[i]!, axis});
    else addSpan(rows, spanOf(bucket, bounds), counts[i]!, axis);
  }
}

/** The rows that a bucket overlaps, from one below the axis on, and the share of it in each. */
interface Overlap {
  first: number;
  shares: readonly number[];
}

/** By bucket, as far as they were asked for: buckets are the same in all histograms, and most are not cut short by an extreme. */
type Overlaps = (Overlap | undefined)[];

const known = new WeakMap<RowAxis, Overlaps>();

function overlapsOf(axis: RowAxis): Overlaps {
  const found = known.get(axis) ?? Array<undefined>(2 * LAST_BUCKET + 1).fill(undefined);
  known.set(axis, found);
  return found;
}

function addWhole(rows: RowCounts, overlaps: Overlaps, {bucket, count, axis}: {bucket: number; count: number; axis: RowAxis}): void {
  const {first, shares} = (overlaps[bucket + LAST_BUCKET] ??= overlapOf(bucket, axis));
  for (let i = 0; i < shares.length; i++) addToRow(rows, first + i, count * shares[i]!);
}

function overlapOf(bucket: number, axis: RowAxis): Overlap {
  const one = {counts: new Float64Array(axis.rows + 2), zeros: 0, below: 0, above: 0};
  const shifted = {...axis, edges: Float64Array.of(NaN, ...axis.edges), rowOf: (value: number) => axis.rowOf(value) + 1};
  addSpan(one, [lowerEdge(bucket), upperEdge(bucket)], 1, shifted);
  const filled = [...one.counts.keys()].filter((row) => one.counts[row]! > 0);
  const [first, last] = [filled[0] ?? 0, filled.at(-1) ?? 0];
  return {first: first - 1, shares: [...one.counts.subarray(first, last + 1)]};
}

/** More whole numbers than this in a bucket are spread like any others. */
const COUNTABLE = 32;

/** The few whole numbers that a bucket's elements can be; null when they are none or many. */
function wholeNumbersIn(bucket: number, {low, high}: Bounds): number[] | null {
  const outermost = bucket > 0 ? Math.ceil(upperEdge(bucket)) - 1 : Math.floor(lowerEdge(bucket)) + 1;
  const innermost = bucket > 0 ? Math.ceil(lowerEdge(bucket)) : Math.floor(upperEdge(bucket));
  const first = Math.max(Math.min(innermost, outermost), low);
  const last = Math.min(Math.max(innermost, outermost), high);
  const isWithin = bucket > 0 ? innermost <= outermost : innermost >= outermost;
  if (!isWithin || last < first || last - first >= COUNTABLE) return null;
  return Array.from({length: last - first + 1}, (_, i) => first + i);
}

function addZeros(rows: RowCounts, count: number, {zeroRow, rows: number}: RowAxis): void {
  if (zeroRow < 0) rows.below += count;
  else if (zeroRow >= number) rows.above += count;
  else rows.zeros += count;
}

function addSpan(rows: RowCounts, [low, high]: [number, number], count: number, axis: RowAxis): void {
  const first = axis.rowOf(low);
  const last = axis.rowOf(high);
  if (first === last || !(high > low)) {
    addToRow(rows, first, count);
    return;
  }
  const density = count / (high - low);
  let from = low;
  for (let row = first; row < last; row++) {
    const to = Math.min(axis.edges[row + 1]!, high);
    addToRow(rows, row, (to - from) * density);
    from = to;
  }
  addToRow(rows, last, (high - from) * density);
}

function addToRow(rows: RowCounts, row: number, count: number): void {
  if (row < 0) rows.below += count;
  else if (row >= rows.counts.length) rows.above += count;
  else rows.counts[row]! += count;
}

/** All elements of a row, zeros included. */
export function countIn(rows: RowCounts, row: number, axis: RowAxis): number {
  return rows.counts[row]! + (row === axis.zeroRow ? rows.zeros : 0);
}
