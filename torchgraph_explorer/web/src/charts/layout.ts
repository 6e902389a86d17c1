/** Where the parts of a strip stand, in CSS pixels. */

/** A box with y pointing down. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface StripLayout {
  /** Histograms, bands or a line over time. */
  plot: Box;
  /** The chosen step's bars, level with the plot. */
  slice: Box;
  /** Of the whole strip. */
  width: number;
  height: number;
}

/** Room for value labels to the left of the plot. */
const GUTTER = 46;
/** Height of a rim, which holds what lies outside the axis; one pixel apart from the plot. */
export const RIM = 3;
/** Height of the marks above the upper rim, where something was not finite. */
export const MARK = 4;
const TOP = MARK + RIM + 3;
const BOTTOM = RIM + 1 + 16;
const GAP = 8;
const TARGET_HEIGHT = 112;

export interface StripRoom {
  /** About how high the plot is, in pixels. */
  height?: number | undefined;
  /** False where no bars stand beside the plot, which has their room then. */
  hasBars?: boolean | undefined;
}

/** Lays a strip out in a width. Rows are whole pixels tall, so that none looks denser than another. */
export function stripLayout(width: number, rows: number, {height: target = TARGET_HEIGHT, hasBars = true}: StripRoom = {}): StripLayout {
  const height = Math.max(1, Math.round(target / rows)) * rows;
  const sliceWidth = hasBars ? Math.round(Math.min(72, Math.max(40, width * 0.2))) : 0;
  const plotWidth = Math.max(16, Math.floor(width - GUTTER - (hasBars ? GAP : 0) - sliceWidth - 1));
  const plot = {x: GUTTER, y: TOP, width: plotWidth, height};
  const slice = {x: GUTTER + plotWidth + GAP, y: TOP, width: sliceWidth, height};
  return {plot, slice, width, height: TOP + height + BOTTOM};
}

/** The pixel of a position on the value axis (0 at its low end), inside a box. */
export function yOf({y, height}: Box, position: number): number {
  return y + (1 - position) * height;
}
