/** Bands or lines of several runs in one plot, each in its colour. */

import {QUANTILES} from '../../histogram/histogram';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo, drawOutline, drawTimeAxis, drawValueAxis, drawZero} from './axes';
import {area, edge, line} from './bands';
import {drawLines} from './line';
import {drawMarks} from './marks';
import type {Context} from './context';

/** A run's picture. All of a plot have the same axes. */
export interface RunCurve {
  scene: Scene;
  colour: string;
  dashes: readonly number[];
}

/** Of more runs than this the edges of the bands are drawn as lines: their areas would hide each other. */
const FEW = 4;
const OPACITY = 0.16;
const EDGE_OPACITY = 0.4;
const [LOW, HIGH] = [QUANTILES.indexOf(0.05), QUANTILES.indexOf(0.95)];

/** Paints the plot with its axes; the first curve, which is that of the run on show, on top. */
export function drawRuns(context: Context, curves: readonly RunCurve[], palette: Palette): void {
  const first = curves[0]?.scene;
  if (first === undefined) return;
  context.font = palette.font;
  drawOutline(context, first, palette);
  drawZero(context, first, palette);
  drawValueAxis(context, first, palette);
  for (const curve of curves) (curves.length <= FEW ? drawBand : drawEdges)(context, curve);
  for (const curve of [...curves].reverse()) drawCurve(context, curve, palette);
  for (const {scene, colour} of curves) drawMarks(context, scene, {...palette, nonfinite: colour});
  drawTimeAxis(context, first, palette);
}

/** Where nine tenths of the elements lie. */
function drawBand(context: Context, {scene, colour}: RunCurve): void {
  if (scene.content.mode !== 'bands') return;
  context.save();
  clipTo(context, scene.layout.plot);
  context.fillStyle = colour;
  context.globalAlpha = OPACITY;
  for (const piece of scene.content.bands) area(context, edge(piece, LOW, scene), edge(piece, HIGH, scene));
  context.restore();
}

/** Between which values nine tenths of the elements lie. */
function drawEdges(context: Context, {scene, colour, dashes}: RunCurve): void {
  if (scene.content.mode !== 'bands') return;
  context.save();
  clipTo(context, scene.layout.plot);
  context.setLineDash([...dashes]);
  context.strokeStyle = colour;
  context.globalAlpha = EDGE_OPACITY;
  for (const piece of scene.content.bands) for (const quantile of [LOW, HIGH]) line(context, edge(piece, quantile, scene));
  context.restore();
}

function drawCurve(context: Context, {scene, colour, dashes}: RunCurve, palette: Palette): void {
  context.save();
  context.setLineDash([...dashes]);
  if (scene.content.mode === 'line') drawLines(context, scene.content.lines, {scene, palette: {...palette, series: colour, rimColour: colour}});
  if (scene.content.mode === 'bands') {
    clipTo(context, scene.layout.plot);
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    for (const piece of scene.content.bands) line(context, edge(piece, QUANTILES.indexOf(0.5), scene));
  }
  context.restore();
}
