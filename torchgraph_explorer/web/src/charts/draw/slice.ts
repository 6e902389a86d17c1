/** The chosen step's histogram as bars beside the plot. */

import type {SeriesHistory} from '../../api/types';
import {boundsOf, entryOf, histogramOf, isLost, reached} from '../../history';
import {RIM, type Box} from '../layout';
import type {Palette} from '../palette';
import {rebin} from '../../histogram/rebin';
import type {RowGrid} from '../grid';
import {scaleNumber} from '../scale';
import type {Scene} from '../scene';
import {sliceBars, type Bar} from '../slice';
import {drawHatch, lostHatch} from './gaps';
import type {Context} from './context';

export interface Chosen {
  /** Where the chosen frame is looked up: a history that may be finer than the plot's. */
  history: SeriesHistory;
  frame: number | null;
  palette: Palette;
}

/** What stands beside the plot for a frame: nothing but the base line where the series has no entry. */
export function drawSlice(context: Context, scene: Scene, {history, frame, palette}: Chosen): void {
  const {slice} = scene.layout;
  context.fillStyle = palette.outline;
  context.fillRect(slice.x, slice.y, 1, slice.height);
  const entry = frame === null ? -1 : entryOf(history, reached(history, frame));
  if (entry < 0) return;
  if (isLost(history, entry)) drawHatch(context, {...slice, x: slice.x + 1, width: slice.width - 1}, lostHatch(palette));
  const rows = rebin(histogramOf(history, entry), boundsOf(history, entry), scene.grid);
  const inside = {...slice, x: slice.x + 1, width: slice.width - 1};
  for (const bar of sliceBars(rows, scene.grid, scene.options.counts)) drawBar(context, bar, {box: inside, grid: scene.grid, palette});
  if (scene.content.mode === 'line') drawEnds(context, scene, palette);
}

interface BarRoom {
  box: Box;
  grid: RowGrid;
  palette: Palette;
}

function drawBar(context: Context, bar: Bar, {box, grid, palette}: BarRoom): void {
  const {y, height} = spanOfRow(bar.row, grid.rows, box);
  const width = Math.max(1, bar.length * box.width);
  const isOutside = bar.row < 0 || bar.row >= grid.rows;
  context.fillStyle = isOutside ? palette.rimColour : bar.isCut ? palette.spike : palette.series;
  context.fillRect(box.x, y, width, height);
  if (!bar.isCut) return;
  // A notch says that the bar goes on.
  context.fillStyle = palette.surface;
  context.fillRect(box.x + width - 5, y, 2, height);
}

function spanOfRow(row: number, rows: number, box: Box): {y: number; height: number} {
  if (row < 0) return {y: box.y + box.height + 1, height: RIM};
  if (row >= rows) return {y: box.y - 1 - RIM, height: RIM};
  const tall = box.height / rows;
  return {y: box.y + (rows - 1 - row) * tall, height: tall};
}

/** Beside a line the bars have an axis of their own, so they carry its ends, legible on top of them. */
function drawEnds(context: Context, {layout: {slice}, grid: {scale}}: Scene, palette: Palette): void {
  context.font = palette.font;
  context.textAlign = 'right';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  context.strokeStyle = palette.surface;
  context.fillStyle = palette.ink;
  const ends = [
    {value: scale.high, y: slice.y + 1, side: 'top'},
    {value: scale.low, y: slice.y + slice.height, side: 'bottom'},
  ] as const;
  for (const {value, y, side} of ends) {
    context.textBaseline = side;
    context.strokeText(scaleNumber(value, scale), slice.x + slice.width, y);
    context.fillText(scaleNumber(value, scale), slice.x + slice.width, y);
  }
}
