/** Quantile bands: three nested areas and the median as a line. */

import type {BandPoint} from '../bands';
import {QUANTILES} from '../../histogram/histogram';
import {yOf} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import {clipTo, drawZero} from './axes';
import {drawLeaving} from './marks';
import type {Context} from './context';

const PAIRS = [0, 1, 2].map((low) => [low, QUANTILES.length - 1 - low] as const);
const MEDIAN = QUANTILES.indexOf(0.5);
const OPACITY = [0.18, 0.22, 0.36];

export interface Point {
  x: number;
  y: number;
}

/** Paints each unbroken piece. A piece of one column is as wide as that column. */
export function drawBands(context: Context, bands: readonly BandPoint[][], {scene, palette}: {scene: Scene; palette: Palette}): void {
  context.save();
  clipTo(context, scene.layout.plot);
  context.fillStyle = palette.series;
  context.strokeStyle = palette.series;
  PAIRS.forEach(([low, high], pair) => {
    context.globalAlpha = OPACITY[pair]!;
    bands.forEach((piece) => area(context, edge(piece, low, scene), edge(piece, high, scene)));
  });
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  bands.forEach((piece) => line(context, edge(piece, MEDIAN, scene)));
  drawZero(context, scene, palette);
  context.restore();
  for (const {column, values} of bands.flat()) {
    const [x, end] = [scene.columns.left[column]!, scene.columns.right[column]!];
    drawLeaving(context, {low: values[0]!, high: values.at(-1)!, x, width: end - x}, {scene, palette});
  }
}

/** One quantile along a piece, through the middles of its columns and out to the sides of the first and last. */
export function edge(piece: readonly BandPoint[], quantile: number, {columns, layout: {plot}, scale}: Scene): Point[] {
  const yAt = ({values}: BandPoint) => yOf(plot, scale.position(values[quantile]!));
  const middle = ({column}: BandPoint) => (columns.left[column]! + columns.right[column]!) / 2;
  const [first, last] = [piece[0]!, piece.at(-1)!];
  return [
    {x: plot.x + columns.left[first.column]!, y: yAt(first)},
    ...piece.map((point) => ({x: plot.x + middle(point), y: yAt(point)})),
    {x: plot.x + columns.right[last.column]!, y: yAt(last)},
  ];
}

/** Fills what lies between two edges. */
export function area(context: Context, low: readonly Point[], high: readonly Point[]): void {
  context.beginPath();
  trace(context, [...low, ...[...high].reverse()]);
  context.closePath();
  context.fill();
}

/** Draws one edge. */
export function line(context: Context, points: readonly Point[]): void {
  context.beginPath();
  trace(context, points);
  context.stroke();
}

function trace(context: Context, points: readonly Point[]): void {
  points.forEach(({x, y}, i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
}
