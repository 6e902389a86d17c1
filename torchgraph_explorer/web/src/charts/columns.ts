/** Frames mapped to columns of pixels: wide where frames are few, shared where they are many. */

import type {SeriesHistory} from '../api/types';

/** Columns from left to right, each at least one pixel wide, none overlapping. */
export interface Columns {
  /** First pixel of each column, and the pixel after its last. */
  left: Int32Array;
  right: Int32Array;
  /** The column of each frame; -1 for a frame that is not on the time axis. */
  of: Int32Array;
}

/** Pixels between which all columns lie. */
export interface Ends {
  left: number;
  right: number;
}

/**
 * Gives every frame a column.
 *
 * @param positions Pixel of each frame, in frame order, in any order of size; NaN for a frame that is not on the axis.
 * @param width Pixels there are.
 * @param ends Where the first column begins and the last one ends; a run may be shorter than the axis.
 *
 * Frames that fall into the same pixel share a column. A column reaches halfway to its neighbours, so that each pixel
 * shows the frame nearest to it.
 */
export function columnsOf(positions: ArrayLike<number>, width: number, ends: Ends = {left: 0, right: width}): Columns {
  const order = placed(positions, width);
  const of = new Int32Array(positions.length).fill(-1);
  const first: number[] = []; // position of each column's first and last frame
  const last: number[] = [];
  let pixel = -1;
  for (const frame of order) {
    const position = positions[frame]!;
    if (pixelOf(position, width) !== pixel) {
      pixel = pixelOf(position, width);
      first.push(position);
    }
    last[first.length - 1] = position;
    of[frame] = first.length - 1;
  }
  return {...sides(first, last, {width, ends}), of};
}

function placed(positions: ArrayLike<number>, width: number): number[] {
  const frames = Array.from({length: positions.length}, (_, frame) => frame);
  const visible = frames.filter((frame) => positions[frame]! >= 0 && positions[frame]! <= width);
  return visible.sort((a, b) => positions[a]! - positions[b]! || a - b);
}

function pixelOf(position: number, width: number): number {
  return Math.min(width - 1, Math.floor(position));
}

function sides(first: readonly number[], last: readonly number[], {width, ends}: {width: number; ends: Ends}): Pick<Columns, 'left' | 'right'> {
  const left = new Int32Array(first.length);
  const right = new Int32Array(first.length);
  for (let column = 0; column < first.length; column++) {
    left[column] = column === 0 ? beginning(ends.left, first[0]!, width) : right[column - 1]!;
    right[column] = column === first.length - 1 ? ending(ends.right, last[column]!, width) : between(last[column]!, first[column + 1]!, width);
  }
  return {left, right};
}

/** Where the first column begins, which has its frame's pixel. */
function beginning(end: number, first: number, width: number): number {
  return Math.max(0, Math.min(Math.round(end), pixelOf(first, width)));
}

/** The pixel after the last column, which has its frame's pixel. */
function ending(end: number, last: number, width: number): number {
  return Math.min(width, Math.max(Math.round(end), pixelOf(last, width) + 1));
}

/** The boundary between two frames in different pixels: halfway, but leaving each its own pixel. */
function between(left: number, right: number, width: number): number {
  const middle = Math.round((left + right) / 2);
  return Math.min(Math.max(middle, pixelOf(left, width) + 1), pixelOf(right, width));
}

/** The entries of a history that stand in the same column as a frame, from the first to the last; none without a column. */
export function entriesBeside(history: SeriesHistory, frame: number, {of}: Columns): number[] {
  const column = of[frame] ?? -1;
  if (column < 0) return [];
  const found: number[] = [];
  history.frame.forEach((number, entry) => of[number] === column && found.push(entry));
  return found;
}

/** A column and the entries of a history that stand in it. */
export interface ColumnEntries {
  column: number;
  entries: number[];
}

/** Which entries of a history each column shows, from left to right; columns without any are left out. */
export function entriesByColumn({frame}: SeriesHistory, {of}: Columns): ColumnEntries[] {
  const found = new Map<number, ColumnEntries>();
  frame.forEach((number, entry) => {
    const column = of[number] ?? -1;
    const known = found.get(column);
    if (known) known.entries.push(entry);
    else if (column >= 0) found.set(column, {column, entries: [entry]});
  });
  return [...found.values()].sort((a, b) => a.column - b.column);
}
