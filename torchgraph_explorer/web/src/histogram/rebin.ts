/** Exponent buckets spread over the rows of a drawn histogram. */

import type {SeriesHistory} from '../api/types';
import {bucketOf, lowerEdge, spanOf, upperEdge, type Bounds, type Histogram} from './buckets';
import {boundsOf} from '../history';
import {rowEdges, rowOf, type ValueScale} from '../charts/scale';

/** One drawn histogram. Every element is in exactly one of the four fields. */
export interface Rows {
  /** Elements per row, lowest row first; fractions, since a bucket may straddle rows. */
  counts: Float64Array;
  /** Elements that are zero, when zero is on the axis; they belong to the row `zeroRow`. */
  zeros: number;
  /** Elements below and above the axis. */
  below: number;
  above: number;
}

/** How histograms are spread: an axis cut into rows. */
export interface RowGrid {
  scale: ValueScale;
  rows: number;
  edges: Float64Array;
  /** The row that holds zero; -1 when zero is below the axis, `rows` when it is above. */
  zeroRow: number;
  /** Elements are whole numbers, so they stand on those and not between them. */
  isWhole: boolean;
}

/** Cuts an axis into `rows` equally tall rows. */
export function rowGrid(scale: ValueScale, rows: number, isWhole = false): RowGrid {
  return {scale, rows, edges: rowEdges(scale, rows), zeroRow: rowOf(scale, rows, 0), isWhole};
}

/** A history has nothing between −1 and 1 but zeros, and whole extremes: it is counts, labels or ones. */
export function isWhole(history: SeriesHistory): boolean {
  const ones = bucketOf(1);
  const isLarge = history.buckets.every((bucket) => bucket === 0 || Math.abs(bucket) >= ones);
  return isLarge && history.frame.every((_, entry) => Object.values(boundsOf(history, entry)).every(isWholeOrNone));
}

function isWholeOrNone(value: number): boolean {
  return Number.isNaN(value) || Number.isInteger(value);
}

/** Rows without elements. */
export function emptyRows(grid: RowGrid): Rows {
  return {counts: new Float64Array(grid.rows), zeros: 0, below: 0, above: 0};
}

/** A histogram spread over the rows of a grid, in proportion to how far each bucket overlaps each row. */
export function rebin(histogram: Histogram, bounds: Bounds, grid: RowGrid): Rows {
  const rows = emptyRows(grid);
  addTo(rows, histogram, bounds, grid);
  return rows;
}

/** Adds a histogram to rows that may already hold others. `bounds` are its smallest and largest element. */
export function addTo(rows: Rows, {buckets, counts}: Histogram, bounds: Bounds, grid: RowGrid): void {
  for (let i = 0; i < counts.length; i++) {
    const points = grid.isWhole ? wholeNumbersIn(buckets[i]!, bounds) : null;
    if (buckets[i] === 0) addZeros(rows, counts[i]!, grid);
    else if (points !== null) points.forEach((value) => addToRow(rows, rowOf(grid.scale, grid.rows, value), counts[i]! / points.length));
    else addSpan(rows, spanOf(buckets[i]!, bounds), counts[i]!, grid);
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

function addZeros(rows: Rows, count: number, {zeroRow, rows: number}: RowGrid): void {
  if (zeroRow < 0) rows.below += count;
  else if (zeroRow >= number) rows.above += count;
  else rows.zeros += count;
}

function addSpan(rows: Rows, [low, high]: [number, number], count: number, grid: RowGrid): void {
  const first = rowOf(grid.scale, grid.rows, low);
  const last = rowOf(grid.scale, grid.rows, high);
  if (first === last || !(high > low)) {
    addToRow(rows, first, count);
    return;
  }
  const density = count / (high - low);
  let from = low;
  for (let row = first; row < last; row++) {
    const to = Math.min(grid.edges[row + 1]!, high);
    addToRow(rows, row, (to - from) * density);
    from = to;
  }
  addToRow(rows, last, (high - from) * density);
}

function addToRow(rows: Rows, row: number, count: number): void {
  if (row < 0) rows.below += count;
  else if (row >= rows.counts.length) rows.above += count;
  else rows.counts[row]! += count;
}

/** All elements of a row, zeros included. */
export function countIn(rows: Rows, row: number, grid: RowGrid): number {
  return rows.counts[row]! + (row === grid.zeroRow ? rows.zeros : 0);
}
