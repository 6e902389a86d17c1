/** A statistic as a line with gaps. */

import {yOf} from '../layout';
import type {LinePoint} from '../lines';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo, drawZero} from './axes';
import {drawLeaving} from './marks';
import type {Context} from './context';

const FAINT = 0.35;

/** Paints each unbroken line; a point alone is a dot. */
export function drawLines(context: Context, lines: readonly LinePoint[][], {scene, palette}: {scene: Scene; palette: Palette}): void {
  drawZero(context, scene, palette);
  context.save();
  clipTo(context, scene.layout.plot);
  context.strokeStyle = context.fillStyle = palette.series;
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  for (const points of lines) {
    drawRange(context, points, scene);
    if (points.length === 1) dot(context, points[0]!, scene);
    else polyline(context, points, scene);
  }
  context.restore();
  for (const {frame, low, high} of lines.flat()) {
    drawLeaving(context, {low, high, x: scene.positions.middles[frame]! - 1, width: 2}, {scene, palette});
  }
}

/** Where several steps are merged, a line from the least to the most it was at one of them. */
function drawRange(context: Context, points: readonly LinePoint[], scene: Scene): void {
  context.save();
  context.globalAlpha = FAINT;
  context.beginPath();
  for (const point of points) {
    if (point.low === point.high) continue;
    const [x] = pointAt(point, scene);
    context.moveTo(x, heightOf(point.low, scene));
    context.lineTo(x, heightOf(point.high, scene));
  }
  context.stroke();
  context.restore();
}

function polyline(context: Context, points: readonly LinePoint[], scene: Scene): void {
  context.beginPath();
  points.forEach((point, i) => {
    const [x, y] = pointAt(point, scene);
    if (i === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
  context.stroke();
}

function dot(context: Context, point: LinePoint, scene: Scene): void {
  const [x, y] = pointAt(point, scene);
  context.beginPath();
  context.arc(x, y, 2.5, 0, 2 * Math.PI);
  context.fill();
}

function pointAt({frame, value}: LinePoint, scene: Scene): [number, number] {
  return [scene.layout.plot.x + scene.positions.middles[frame]!, heightOf(value, scene)];
}

function heightOf(value: number, {layout: {plot}, scale}: Scene): number {
  return yOf(plot, scale.position(value));
}
