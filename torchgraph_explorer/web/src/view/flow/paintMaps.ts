/** Draws the maps of a tensor, and frames around cells and regions. */

import type {Colours} from './colour';
import {stepOf} from './colour';
import {isOnShow, placeOf} from '../../flow/maps';
import type {Cell, MapLayout} from '../../flow/maps';
import type {Span} from '../../flow/maps';
import type {Maps} from '../../flow/types';

export interface Frame {
  colour: string;
  width: number;
  isDashed?: boolean;
}

/** The place of a cell among the values of the maps. */
export function placeIn({shape: [, rows, columns]}: Maps, {map, row, column}: Cell): number {
  return (map * rows + row) * columns + column;
}

/** The cells that are shown. */
export function eachCell({maps, rows, columns, top, left}: MapLayout, visit: (cell: Cell) => void): void {
  for (let map = 0; map < maps; map++) for (let row = top; row < top + rows; row++) for (let column = left; column < left + columns; column++) visit({map, row, column});
}

export function paint(context: CanvasRenderingContext2D, layout: MapLayout, maps: Maps, {colours, scale, isSigned}: {colours: Colours; scale: number; isSigned: boolean}): void {
  const table = isSigned ? colours.table : colours.sequential;
  context.clearRect(0, 0, layout.width, layout.height);
  const inset = layout.cell > 5 ? 1 : 0;
  eachCell(layout, (cell) => {
    const step = stepOf(maps.values[placeIn(maps, cell)]!, scale, isSigned);
    const {x, y} = placeOf(layout, cell);
    const [r, g, b] = step < 0 ? [] : table.subarray(step * 4, step * 4 + 3);
    context.fillStyle = step < 0 ? colours.nonfinite : `rgb(${r} ${g} ${b})`;
    context.fillRect(x, y, layout.cell - inset, layout.cell - inset);
  });
}

/** A frame around a cell. */
export function ring(context: CanvasRenderingContext2D, layout: MapLayout, cell: Cell, frame: Frame): void {
  if (isOnShow(layout, cell)) box(context, layout, cell.map, {rows: [cell.row, cell.row + 1], columns: [cell.column, cell.column + 1]}, frame);
}

/** A frame around a part of a map, as far as it is shown. */
export function box(context: CanvasRenderingContext2D, layout: MapLayout, map: number, {rows, columns}: Span, {colour, width, isDashed}: Frame): void {
  const [top, bottom] = [Math.max(rows[0], layout.top), Math.min(rows[1], layout.top + layout.rows)];
  const [left, right] = [Math.max(columns[0], layout.left), Math.min(columns[1], layout.left + layout.columns)];
  if (top >= bottom || left >= right) return;
  if (layout.line < layout.columns && (right - left > 1 || bottom - top > 1)) {
    // The rows are folded, so that a rectangle has no single frame.
    for (let row = top; row < bottom; row++) for (let column = left; column < right; column++) ring(context, layout, {map, row, column}, {colour, width: 1});
    return;
  }
  const {x, y} = placeOf(layout, {map, row: top, column: left});
  const line = Math.min(width, Math.max(1, layout.cell / 4));
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.setLineDash(isDashed ? [3, 2] : []);
  context.strokeRect(x + line / 2, y + line / 2, Math.max(1, (right - left) * layout.cell - line), Math.max(1, (bottom - top) * layout.cell - line));
  context.setLineDash([]);
}
