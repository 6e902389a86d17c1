/** A statistic as a line, broken where there is none. */

import {yOf} from '../layout';
import type {LinePoint} from '../lines';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo, drawZero} from './axes';
import {drawLeaving} from './marks';
import type {Context} from './plot';

/** Paints each unbroken line; a point alone is a dot. */
export function drawLines(context: Context, lines: readonly LinePoint[][], {scene, palette}: {scene: Scene; palette: Palette}): void {
  drawZero(context, scene, palette);
  context.save();
  clipTo(context, scene.layout.plot);
  context.strokeStyle = context.fillStyle = palette.series;
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  for (const points of lines) {
    if (points.length === 1) dot(context, points[0]!, scene);
    else polyline(context, points, scene);
  }
  context.restore();
  for (const {frame, value} of lines.flat()) {
    drawLeaving(context, {low: value, high: value, x: scene.pixels[frame]! - 1, width: 2}, {scene, palette});
  }
}

function polyline(context: Context, points: readonly LinePoint[], scene: Scene): void {
  context.beginPath();
  points.forEach((point, i) => {
    const [x, y] = placeOf(point, scene);
    if (i === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
  context.stroke();
}

function dot(context: Context, point: LinePoint, scene: Scene): void {
  const [x, y] = placeOf(point, scene);
  context.beginPath();
  context.arc(x, y, 2.5, 0, 2 * Math.PI);
  context.fill();
}

function placeOf({frame, value}: LinePoint, {pixels, layout: {plot}, scale}: Scene): [number, number] {
  return [plot.x + pixels[frame]!, yOf(plot, scale.place(value))];
}
