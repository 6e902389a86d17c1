/** A vector as bars: where they stand. Pixels, y downwards. Pure. */

import type {Box, Counts, Grid} from './grid';

const WIDEST = 40;
const HEIGHT = 180;

/** One row of cells, as high as the box allows. */
export function barsOf({columns}: Counts, box: Box): Grid {
  const cellWidth = Math.max(1, Math.min(WIDEST, Math.floor(box.width / Math.max(1, columns))));
  const height = Math.max(60, Math.min(HEIGHT, box.height));
  const width = cellWidth * Math.max(1, columns);
  return {cellWidth, cellHeight: height, across: 1, width, height, stepX: width + 8, stepY: height + 8, label: 0};
}

/** From where to where the bars of values go, and where zero is. `range` is what fits in at least. */
export function heightsOf(values: ArrayLike<number>, height: number, range?: {low: number | null; high: number | null}): {zero: number; tops: number[]} {
  let [low, high] = [Math.min(0, range?.low ?? 0), Math.max(0, range?.high ?? 0)];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const length = high - low || 1;
  const yOf = (value: number): number => height * (1 - (value - low) / length);
  return {zero: high === low ? height / 2 : yOf(0), tops: Array.from(values, (value) => (Number.isFinite(value) ? (high === low ? height / 2 : yOf(value)) : NaN))};
}
