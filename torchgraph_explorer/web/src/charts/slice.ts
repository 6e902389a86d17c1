/** One step's histogram as bars beside a strip, row by row on the strip's own value axis. */

import {clamp} from '../histogram/histogram';
import {countIn, type RowCounts} from '../histogram/rebin';
import type {RowGrid} from './grid';

/** A bar. Lengths are shares of the room there is. */
export interface Bar {
  /** The row it stands in; -1 for what lies below the axis, the number of rows for what lies above. */
  row: number;
  length: number;
  count: number;
  /** The bar stands for more than the room can show: a spike of zeros beside everything else. */
  isCut: boolean;
}

/** The bars that are not empty, lowest first. The longest one that is not a spike of zeros fills the room. */
export function sliceBars(rows: RowCounts, grid: RowGrid, counts: 'linear' | 'log'): Bar[] {
  const stretch = counts === 'linear' ? (count: number) => count : Math.log1p;
  const all = [rows.below, ...Array.from(rows.counts, (_, row) => countIn(rows, row, grid)), rows.above];
  const longest = stretch(Math.max(...rows.counts) || Math.max(...all) || 1);
  const bars = all.map((count, i) => ({row: i - 1, count, ...lengthOf(stretch(count) / longest)}));
  return bars.filter(({count}) => count > 0);
}

function lengthOf(length: number): Pick<Bar, 'length' | 'isCut'> {
  return {length: clamp(length, 0, 1), isCut: length > 1};
}
