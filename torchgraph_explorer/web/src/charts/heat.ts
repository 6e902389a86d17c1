/** Histograms over time as a grid of shares, and how strongly each share is drawn. */

import type {SeriesHistory} from '../api/types';
import {clamp} from '../histogram/histogram';
import {entriesByColumn, type ColumnEntries, type Columns} from './columns';
import {boundsOf, histogramOf, nonfiniteOf} from '../history';
import {addTo, emptyRows, type RowCounts} from '../histogram/rebin';
import {isSameGrid, type RowGrid} from './grid';

/** What a heat strip shows, one column after the other. Shares are of a column's finite elements. */
export interface Heat {
  grid: RowGrid;
  columns: Columns;
  /** Share in each row, zeros included, `[columns, rows]`, lowest row first. */
  shares: Float32Array;
  /** Share outside the axis, per column. */
  below: Float32Array;
  above: Float32Array;
  /** NaN and infinite elements per column. */
  nonfinite: Float64Array;
  /** The share that is drawn at full strength; spikes of zeros and single odd frames are left out of account. */
  peak: number;
  /** Finite elements of the column that has most, per frame. */
  elements: number;
}

const known = new WeakMap<SeriesHistory, Heat>();

/**
 * Spreads a history over the columns and rows of a picture. Frames that share a column are added up.
 *
 * The last picture of a history is kept: strips of several runs are worked out together, again and again as they come.
 */
export function heatOf(history: SeriesHistory, columns: Columns, grid: RowGrid): Heat {
  const before = known.get(history);
  if (before?.columns === columns && isSameGrid(before.grid, grid)) return before;
  const heat = spread(history, columns, grid);
  known.set(history, heat);
  return heat;
}

function spread(history: SeriesHistory, columns: Columns, grid: RowGrid): Heat {
  const heat = blank(columns, grid);
  const peaks = entriesByColumn(history, columns).map((group) => fill(heat, history, group));
  return {...heat, peak: usualPeak(peaks)};
}

function blank(columns: Columns, grid: RowGrid): Heat {
  const width = columns.left.length;
  return {
    grid,
    columns,
    shares: new Float32Array(width * grid.rows),
    below: new Float32Array(width),
    above: new Float32Array(width),
    nonfinite: new Float64Array(width),
    peak: 1,
    elements: 0,
  };
}

/** Returns the largest share of a row, zeros aside. */
function fill(heat: Heat, history: SeriesHistory, {column, entries}: ColumnEntries): number {
  const rows = emptyRows(heat.grid);
  let frames = 0;
  for (const entry of entries) {
    addTo(rows, histogramOf(history, entry), boundsOf(history, entry), heat.grid);
    heat.nonfinite[column]! += nonfiniteOf(history, entry);
    frames += history.merged[entry]!;
  }
  const elements = elementsIn(rows);
  if (elements === 0) return 0;
  heat.elements = Math.max(heat.elements, elements / frames);
  return write(heat, column, rows, elements);
}

function write(heat: Heat, column: number, rows: RowCounts, elements: number): number {
  const {grid, shares} = heat;
  const start = column * grid.rows;
  let largest = 0;
  for (let row = 0; row < grid.rows; row++) {
    const share = rows.counts[row]! / elements;
    shares[start + row] = share;
    if (share > largest) largest = share;
  }
  if (rows.zeros > 0) shares[start + grid.zeroRow]! += rows.zeros / elements;
  heat.below[column] = rows.below / elements;
  heat.above[column] = rows.above / elements;
  return largest;
}

/** Every element of a drawn histogram. */
export function elementsIn({counts, zeros, below, above}: RowCounts): number {
  return counts.reduce((sum, count) => sum + count, zeros + below + above);
}

/** Nearly the largest: one frame in twenty may be brighter than full. 1 when no column has anything but zeros. */
function usualPeak(peaks: readonly number[]): number {
  const filled = peaks.filter((peak) => peak > 0).sort((a, b) => a - b);
  return filled[Math.ceil(0.95 * filled.length) - 1] ?? 1;
}

/** How strongly a share is drawn: 0 for none, at least a trace for any, 1 for the peak and beyond. */
export function intensity(share: number, {peak, elements}: Heat, counts: 'linear' | 'log'): number {
  if (share <= 0) return 0;
  const strength = counts === 'linear' ? share / peak : Math.log1p(share * elements) / Math.log1p(peak * elements);
  return clamp(strength, 1 / 255, 1);
}

/** How strongly a share outside the axis is drawn: a single element shows, and the usual few do not shout. */
export function rimIntensity(share: number): number {
  return share <= 0 ? 0 : 0.25 + 0.75 * Math.sqrt(share);
}
