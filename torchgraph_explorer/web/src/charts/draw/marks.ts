/** Red marks along the top, where something was NaN or infinite. */

import {MARK, RIM} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import type {Context} from './plot';

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
