/** Paints a strip's scene on a canvas, back to front. */

import type {Palette} from '../palette';
import {emptiness, type Scene} from '../scene';
import {drawOutline, drawTimeAxis, drawValueAxis, drawZero} from './axes';
import {drawBands} from './bands';
import type {Context} from './context';
import {drawGaps} from './gaps';
import {drawHeat} from './heat';
import {drawLimits} from './limits';
import {drawLines} from './line';
import {drawMarks} from './marks';

/** Paints the plot with its axes. The context is in CSS pixels and blank. */
export function drawPlot(context: Context, scene: Scene, palette: Palette): void {
  context.font = palette.font;
  const empty = emptiness(scene);
  drawOutline(context, scene, palette);
  drawGaps(context, scene, palette);
  if (empty === null) {
    drawContent(context, scene, palette);
    drawLimits(context, scene, palette);
    drawValueAxis(context, scene, palette);
  } else {
    drawText(context, scene, {text: empty, palette});
  }
  drawMarks(context, scene, palette);
  drawTimeAxis(context, scene, palette);
}

function drawContent(context: Context, scene: Scene, palette: Palette): void {
  const {content} = scene;
  if (content.mode === 'heat') drawHeat(context, content.heat, {scene, palette});
  if (content.mode === 'heat') drawZero(context, scene, palette);
  if (content.mode === 'bands') drawBands(context, content.bands, {scene, palette});
  if (content.mode === 'line') drawLines(context, content.lines, {scene, palette});
}

/** Writes in the middle of the plot, on a ground of its own where that is hatched. */
function drawText(context: Context, {layout: {plot}, lost}: Scene, {text, palette}: {text: string; palette: Palette}): void {
  const [x, y] = [plot.x + plot.width / 2, plot.y + plot.height / 2];
  const width = Math.min(context.measureText(text).width, plot.width - 8);
  context.fillStyle = palette.surface;
  if (lost.length > 0) context.fillRect(x - width / 2 - 4, y - 9, width + 8, 18);
  context.fillStyle = lost.length > 0 ? palette.nonfinite : palette.label;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(text, x, y, plot.width - 8);
}
