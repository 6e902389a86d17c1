/** The mean of several runs as a line, in a band of their standard deviation and a fainter one from the least to the most. */

import {yOf} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo, drawOutline, drawTimeAxis, drawValueAxis, drawZero} from './axes';
import {area, line} from './bands';
import type {Point} from './bands';
import type {Context} from './context';

/** What the runs have at one step of the first, each at its step beside it. */
export interface RunsPoint {
  /** Pixels from the left of the plot. */
  x: number;
  mean: number;
  /** Standard deviation over the runs, with n − 1; 0 for one run. */
  std: number;
  low: number;
  high: number;
  /** How many runs have a value there. */
  runs: number;
}

/** Paints the plot with the axes of `scene`. */
export function drawMean(context: Context, scene: Scene, {points, palette}: {points: readonly RunsPoint[]; palette: Palette}): void {
  const {plot} = scene.layout;
  const at = (of: (point: RunsPoint) => number): Point[] => points.map((point) => ({x: plot.x + point.x, y: yOf(plot, scene.scale.position(of(point)))}));
  context.font = palette.font;
  drawOutline(context, scene, palette);
  drawValueAxis(context, scene, palette);
  context.save();
  clipTo(context, plot);
  context.fillStyle = context.strokeStyle = palette.series;
  context.lineWidth = 1.5;
  if (points.length > 0) {
    context.globalAlpha = 0.14;
    area(context, at(({low}) => low), at(({high}) => high));
    context.globalAlpha = 0.28;
    area(context, at(({mean, std}) => mean - std), at(({mean, std}) => mean + std));
    context.globalAlpha = 1;
    line(context, at(({mean}) => mean));
  }
  context.restore();
  drawZero(context, scene, palette);
  drawTimeAxis(context, scene, palette);
}
