/** Exponent buckets spread over the rows of a drawn histogram. */

import {lowerEdge, upperEdge} from './buckets';
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
  for (let i = 0; i < counts.length; i++) {
    const points = axis.isWhole ? wholeNumbersIn(buckets[i]!, bounds) : null;
    if (buckets[i] === 0) addZeros(rows, counts[i]!, axis);
    else if (points !== null) points.forEach((value) => addToRow(rows, axis.rowOf(value), counts[i]! / points.length));
    else addSpan(rows, spanOf(buckets[i]!, bounds), counts[i]!, axis);
  }
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
