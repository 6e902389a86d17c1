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

/** Cuts an axis into `rows` equally tall rows. */
export function rowGrid(scale: ValueScale, rows: number, isWhole = false): RowGrid {
  const rowOfValue = (value: number): number => rowOf(scale, rows, value);
  return {scale, rows, edges: rowEdges(scale, rows), rowOf: rowOfValue, zeroRow: rowOfValue(0), isWhole};
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
