/** Paints a vector as bars on a canvas. */

import {heightsOf} from '../../tensors/bars';
import type {Painting} from './paint';
import {scaleOf, shader} from '../../tensors/shade';
import type {Inks} from './shades';

export function paintBars(canvas: HTMLCanvasElement, {view, grid, scale}: Painting, inks: Inks): void {
  const {part, axes} = view;
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.round(grid.width * ratio);
  canvas.height = Math.round(grid.height * ratio);
  canvas.style.width = `${grid.width}px`;
  canvas.style.height = `${grid.height}px`;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.scale(ratio, ratio);
  const values = Array.from(axes.columns.offsets, (offset) => part.values[axes.base + offset] as number);
  const bounds = part.bounds ?? part.summary;
  // As high as the colours say, so that another sample or step can be compared with it.
  const {zero, tops} = heightsOf(values, grid.height - 8, scale === 'all' ? bounds : undefined);
  const shade = shader(inks, scaleOf(bounds, part, scale));
  const gap = grid.cellWidth >= 4 ? 1 : 0;
  values.forEach((value, i) => {
    const x = i * grid.cellWidth;
    const isGood = Number.isFinite(value);
    const [from, to] = isGood ? [Math.min(zero, tops[i] as number), Math.max(zero, tops[i] as number)] : [0, grid.height - 8];
    context.fillStyle = `rgb(${shade(value).join(' ')})`;
    context.globalAlpha = isGood ? 1 : 0.55;
    context.fillRect(x, 4 + from, grid.cellWidth - gap, Math.max(1, to - from));
    context.globalAlpha = 1;
    context.fillStyle = inks.label;
    if (isGood && Math.abs(value) > 0) context.fillRect(x, 4 + (tops[i] as number) - 0.5, grid.cellWidth - gap, 1);
  });
  context.fillStyle = inks.line;
  context.fillRect(0, 4 + zero - 0.5, grid.width, 1);
}
