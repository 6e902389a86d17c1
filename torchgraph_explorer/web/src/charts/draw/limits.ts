/** What a rule does not allow: washed over, beyond a dashed line. */

import {yOf} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo} from './axes';
import type {Context} from './context';

/** Fainter over heat, whose colours are to be read. */
const WASH = {heat: 0.07, bands: 0.14, line: 0.14};

/** Paints what is above and below the limits, as far as the axis shows it. */
export function drawLimits(context: Context, {band, content, scale, layout: {plot}}: Scene, palette: Palette): void {
  if (band === null) return;
  context.save();
  clipTo(context, plot);
  context.fillStyle = context.strokeStyle = palette.limit;
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  const bottom = plot.y + plot.height;
  for (const [value, edge] of [[band.high, plot.y], [band.low, bottom]] as const) {
    if (!Number.isFinite(value)) continue;
    const y = Math.min(bottom, Math.max(plot.y, yOf(plot, scale.position(value))));
    context.globalAlpha = WASH[content.mode];
    context.fillRect(plot.x, Math.min(y, edge), plot.width, Math.abs(edge - y));
    context.globalAlpha = 1;
    if (value < scale.low || value > scale.high) continue;
    context.beginPath();
    context.moveTo(plot.x, y);
    context.lineTo(plot.x + plot.width, y);
    context.stroke();
  }
  context.restore();
}
