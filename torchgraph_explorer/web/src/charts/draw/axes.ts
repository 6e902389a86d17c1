/** The frame of a plot, its value axis, zero line and time axis. */

import {RIM, yOf, type Box} from '../layout';
import type {Palette} from '../palette';
import {scaleNumber, valueTicks, type ValueScale} from '../scale';
import type {Scene} from '../scene';
import {timePixel, timeTicks} from '../timeAxis';
import type {Context} from './context';

const LABEL_GAP = 13; // pixels between the middles of two value labels
const TICK = 3;

/** The ground and the outline of the plot. */
export function drawOutline(context: Context, {layout: {plot}}: Scene, palette: Palette): void {
  context.strokeStyle = palette.grid;
  context.lineWidth = 1;
  context.strokeRect(plot.x - 0.5, plot.y - 0.5, plot.width + 1, plot.height + 1);
}

/** Labels at both ends, and at round values between where there is room. */
export function drawValueAxis(context: Context, {layout: {plot}, scale}: Scene, palette: Palette): void {
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const {value, y, isEnd} of labelled(scale, (position) => yOf(plot, position), plot.height)) {
    context.fillStyle = palette.outline;
    context.fillRect(plot.x - 1 - TICK, Math.round(y) - (y > plot.y ? 1 : 0), TICK, 1);
    context.fillStyle = isEnd ? palette.ink : palette.label;
    context.fillText(scaleNumber(value, scale), plot.x - TICK - 4, y, plot.x - TICK - 4);
  }
  if (scale.kind === 'symlog') drawScaleName(context, plot, palette);
}

/** Below the axis, where the data may have chosen the scale. */
function drawScaleName(context: Context, plot: Box, palette: Palette): void {
  context.textBaseline = 'top';
  context.fillStyle = palette.label;
  context.fillText('symlog', plot.x - TICK - 8, plot.y + plot.height + RIM + TICK + 3, plot.x - TICK - 8);
}

interface Label {
  value: number;
  y: number;
  isEnd: boolean;
}

function labelled(scale: ValueScale, yOfPosition: (position: number) => number, height: number): Label[] {
  const at = (value: number, isEnd: boolean) => ({value, y: yOfPosition(scale.position(value)), isEnd});
  const ends = [at(scale.low, true), at(scale.high, true)];
  const between = valueTicks(scale, Math.floor(height / 28)).map((value) => at(value, false));
  const free = between.filter(({y}) => ends.every((end) => Math.abs(end.y - y) >= LABEL_GAP));
  return [...ends, ...free];
}

/** A dashed line where the value is zero, if that is inside the plot. */
export function drawZero(context: Context, {layout: {plot}, scale}: Scene, palette: Palette): void {
  if (!(scale.low < 0 && scale.high > 0)) return;
  const y = Math.round(yOf(plot, scale.position(0))) + 0.5;
  context.save();
  context.strokeStyle = palette.zero;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(plot.x, y);
  context.lineTo(plot.x + plot.width, y);
  context.stroke();
  context.restore();
}

/** Round steps, clock values or times below the plot, none running into another. */
export function drawTimeAxis(context: Context, {layout: {plot}, axis}: Scene, palette: Palette): void {
  const bottom = plot.y + plot.height + RIM + 1;
  const right = plot.x + plot.width;
  let free = -Infinity;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  for (const {value, label} of timeTicks(axis, Math.max(2, Math.floor(plot.width / 64)))) {
    const x = plot.x + timePixel(axis, plot.width, value);
    const width = context.measureText(label).width;
    const start = Math.min(Math.max(x - width / 2, plot.x - 8), right - width + 4);
    context.fillStyle = palette.outline;
    context.fillRect(Math.round(x), bottom, 1, TICK);
    if (start < free) continue;
    context.fillStyle = palette.label;
    context.fillText(label, start, bottom + TICK + 2);
    free = start + width + 6;
  }
}

/** Keeps what is painted until `restore` inside a box, with a little room for the thickness of lines. */
export function clipTo(context: Context, {x, y, width, height}: Box): void {
  context.beginPath();
  context.rect(x, y - 1, width, height + 2);
  context.clip();
}
