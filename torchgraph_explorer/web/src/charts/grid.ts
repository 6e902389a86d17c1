/** The rows of a drawn histogram on a value axis. */

import type {SeriesHistory} from '../api/types';
import {bucketOf} from '../histogram/buckets';
import type {RowAxis} from '../histogram/rebin';
import {boundsOf} from '../history';
import {rowEdges, rowOf, type ValueScale} from './scale';

/** A value axis, cut into equally tall rows. */
export interface RowGrid extends RowAxis {
  scale: ValueScale;
}

const known = new WeakMap<ValueScale, Map<string, RowGrid>>();

/** Cuts an axis into `rows` equally tall rows; once, so that strips that share the axis share the rows. */
export function rowGrid(scale: ValueScale, rows: number, isWhole = false): RowGrid {
  const ofScale = known.get(scale) ?? new Map<string, RowGrid>();
  known.set(scale, ofScale);
  const name = `${rows} ${isWhole}`;
  const grid = ofScale.get(name) ?? cut(scale, rows, isWhole);
  ofScale.set(name, grid);
  return grid;
}

function cut(scale: ValueScale, rows: number, isWhole: boolean): RowGrid {
  const rowOfValue = (value: number): number => rowOf(scale, rows, value);
  return {scale, rows, edges: rowEdges(scale, rows), rowOf: rowOfValue, zeroRow: rowOfValue(0), isWhole};
}

/** Two grids have the same rows. */
export function isSameGrid(one: RowGrid, other: RowGrid): boolean {
  return one === other || (one.isWhole === other.isWhole && one.rows === other.rows && one.edges.every((edge, i) => edge === other.edges[i]));
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
