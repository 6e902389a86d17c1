/** Marks along the edges: where something was NaN or infinite, and where a line or band leaves the plot. */

import {MARK, RIM} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import type {Context} from './context';

const NARROWEST = 2; // pixels; a single bad step among a thousand must be seen

/** Paints a mark over each column that is not wholly finite. */
export function drawMarks(context: Context, {columns, nonfinite, layout: {plot}}: Scene, palette: Palette): void {
  context.fillStyle = palette.nonfinite;
  const y = plot.y - 2 - RIM - MARK;
  for (const column of nonfinite) {
    const left = columns.left[column]!;
    const width = Math.max(NARROWEST, columns.right[column]! - left);
    context.fillRect(plot.x + Math.min(left, plot.width - width), y, width, MARK);
  }
}

/** Paints in the rims where a line or band goes on outside the plot: at `x` from its left side, `width` pixels wide. */
export function drawLeaving(
  context: Context,
  {low, high, x, width}: {low: number; high: number; x: number; width: number},
  {scene: {layout, scale}, palette}: {scene: Scene; palette: Palette},
): void {
  const {plot} = layout;
  context.fillStyle = palette.rimColour;
  if (high > scale.high) context.fillRect(plot.x + x, plot.y - 1 - RIM, width, RIM);
  if (low < scale.low) context.fillRect(plot.x + x, plot.y + plot.height + 1, width, RIM);
}
