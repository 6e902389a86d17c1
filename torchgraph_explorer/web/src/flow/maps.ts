/** Where the cells of a tensor's maps are drawn, and which element each one is. */

import type {Span} from './region';
import type {Element} from './types';

/** Pixels between maps. */
const GAP = 4;
/** The largest side of a cell, and the room that a tensor gets if nothing is zoomed. */
const LARGEST = 28;
const ROOM = 232;

export interface MapLayout {
  maps: number;
  /** Of the part that is shown. */
  rows: number;
  columns: number;
  /** The first row and column that are shown. */
  top: number;
  left: number;
  /** Side of a cell, in pixels. */
  cell: number;
  /** Maps beside each other. */
  across: number;
  width: number;
  height: number;
}

export interface Cell {
  map: number;
  row: number;
  column: number;
}

/** Maps side by side, in a shape near a square; `zoom` is a factor. Only a part of each is shown, if that is given. */
export function layoutMaps([maps, allRows, allColumns]: readonly [number, number, number], zoom: number, part: Span | null = null): MapLayout {
  const [top, bottom] = part?.rows ?? [0, allRows];
  const [left, right] = part?.columns ?? [0, allColumns];
  const [rows, columns] = [bottom - top, right - left];
  const across = Math.min(maps, Math.max(1, Math.ceil(Math.sqrt((maps * rows) / Math.max(1, columns)))));
  const down = Math.ceil(maps / across);
  const fitting = Math.floor((ROOM - (across - 1) * GAP) / Math.max(1, across * columns));
  const low = Math.floor((ROOM * 1.5) / Math.max(1, down * rows));
  const cell = Math.max(1, Math.round(Math.max(2, Math.min(LARGEST, fitting, low)) * zoom));
  const width = across * columns * cell + (across - 1) * GAP;
  return {maps, rows, columns, top, left, cell, across, width, height: down * rows * cell + (down - 1) * GAP};
}

/** The left upper corner of a cell. */
export function placeOf({cell, across, rows, columns, top, left}: MapLayout, {map, row, column}: Cell): {x: number; y: number} {
  const x = (map % across) * (columns * cell + GAP) + (column - left) * cell;
  const y = Math.floor(map / across) * (rows * cell + GAP) + (row - top) * cell;
  return {x, y};
}

/** Whether a cell is in the part that is shown. */
export function isOnShow({maps, rows, columns, top, left}: MapLayout, {map, row, column}: Cell): boolean {
  return map >= 0 && map < maps && row >= top && row < top + rows && column >= left && column < left + columns;
}

/** The cell at a pixel; null in a gap. */
export function cellAt({cell, across, rows, columns, maps, top, left}: MapLayout, x: number, y: number): Cell | null {
  const [wide, high] = [columns * cell + GAP, rows * cell + GAP];
  const [right, down] = [Math.floor(x / wide), Math.floor(y / high)];
  const map = down * across + right;
  const column = Math.floor((x - right * wide) / cell);
  const row = Math.floor((y - down * high) / cell);
  const isInside = x >= 0 && y >= 0 && right < across && map < maps && column < columns && row < rows;
  return isInside ? {map, row: row + top, column: column + left} : null;
}

/** The cell of a map that is nearest to a pixel. */
export function nearestCell(layout: MapLayout, map: number, x: number, y: number): Cell {
  const {rows, columns, top, left, cell} = layout;
  const corner = placeOf(layout, {map, row: top, column: left});
  const within = (at: number, count: number) => Math.min(Math.max(Math.floor(at / cell), 0), count - 1);
  return {map, row: top + within(y - corner.y, rows), column: left + within(x - corner.x, columns)};
}

/** The dimensions that a selector chooses in: all but the last two. */
export function leadingDims(shape: readonly number[]): number[] {
  return shape.slice(0, Math.max(0, shape.length - 2));
}

/** What is shown at first: the first of everything, and all channels if they are few. */
export function firstLead(shape: readonly number[]): string[] {
  const lead = leadingDims(shape);
  return lead.map((size, i) => (i === lead.length - 1 && lead.length > 1 && size <= 64 ? 'all' : '0'));
}

/** The element that a cell is. */
export function elementOf(shape: readonly number[], lead: readonly string[], {map, row, column}: Cell): number[] {
  const leading = lead.map((part) => (part === 'all' ? map : Number(part)));
  return [...leading, ...[row, column].slice(Math.max(0, 2 - shape.length))];
}

/** The cell of an element; null if it is on no map that is shown. */
export function cellOf(shape: readonly number[], lead: readonly string[], element: readonly number[]): Cell | null {
  const isShown = lead.every((part, i) => part === 'all' || Number(part) === element[i]);
  if (!isShown) return null;
  const last = lead.length - 1;
  const map = last >= 0 && lead[last] === 'all' ? (element[last] as number) : 0;
  const [row = 0, column = 0] = [...(shape.length < 2 ? [0] : []), ...element.slice(lead.length)];
  return {map, row, column};
}

/** The place of an element in the flattened tensor. */
export function flatPlace(shape: readonly number[], element: readonly number[]): number {
  return element.reduce((place, index, i) => place * (shape[i] as number) + index, 0);
}

/** Whether an element lies in a selected one, which may be a region. */
export function isWithin(element: readonly number[], selected: Element): boolean {
  return selected.every((part, i) => {
    const index = element[i] as number;
    return part === null || (typeof part === 'number' ? part === index : part[0] <= index && index < part[1]);
  });
}

/** The region that a group of a grouping is: an index along `dims`, all of the others. */
export function groupElement(shape: readonly number[], dims: readonly number[], group: number): Element {
  const element: Element = shape.map(() => null);
  let left = group;
  for (const dim of [...dims].reverse()) {
    const size = shape[dim] as number;
    element[dim] = left % size;
    left = Math.floor(left / size);
  }
  return element;
}

/** The group that an element belongs to. */
export function groupOf(shape: readonly number[], dims: readonly number[], element: Element): number | null {
  let group = 0;
  for (const dim of dims) {
    const index = element[dim];
    if (typeof index !== 'number') return null;
    group = group * (shape[dim] as number) + index;
  }
  return group;
}

/** `[0, 3, ·, 2:5]`. */
export function elementText(element: Element): string {
  return `[${element.map((part) => (part === null ? '·' : typeof part === 'number' ? part : `${part[0]}:${part[1]}`)).join(', ')}]`;
}
