/** Where the cells of a tensor's maps are drawn, and which element each one is. */

import type {Element} from './types';

/** Pixels between maps. */
const GAP = 4;
/** The largest side of a cell, and the room that a tensor gets if nothing is zoomed. */
const LARGEST = 28;
const ROOM = 232;
/** Cells of a row from which it may be folded. */
const LONG = 58;

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
  /** Cells in a line: a row that is much longer than the maps are high goes on in the next line. */
  line: number;
  /** Maps beside each other. */
  across: number;
  width: number;
  height: number;
}

/** Of each map of a tensor, the rows and columns that are shown. */
export interface Span {
  rows: readonly [number, number];
  columns: readonly [number, number];
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
  if (columns > LONG && columns > 8 * rows) return foldedMaps({maps, rows, columns, top, left}, zoom);
  const across = Math.min(maps, Math.max(1, Math.ceil(Math.sqrt((maps * rows) / Math.max(1, columns)))));
  const down = Math.ceil(maps / across);
  const fitting = Math.floor((ROOM - (across - 1) * GAP) / Math.max(1, across * columns));
  const low = Math.floor((ROOM * 1.5) / Math.max(1, down * rows));
  const cell = Math.max(1, Math.round(Math.max(2, Math.min(LARGEST, fitting, low)) * zoom));
  const width = across * columns * cell + (across - 1) * GAP;
  return {maps, rows, columns, top, left, cell, line: columns, across, width, height: down * rows * cell + (down - 1) * GAP};
}

/** Maps of few long rows, one below the other; each row takes several lines. */
function foldedMaps(part: Pick<MapLayout, 'maps' | 'rows' | 'columns' | 'top' | 'left'>, zoom: number): MapLayout {
  const {maps, rows, columns} = part;
  const line = Math.min(columns, Math.max(LONG, Math.ceil(Math.sqrt(rows * columns))));
  const cell = Math.max(1, Math.round(Math.max(2, Math.min(LARGEST, Math.floor(ROOM / line))) * zoom));
  const high = rows * Math.ceil(columns / line) * cell;
  return {...part, cell, line, across: 1, width: line * cell, height: maps * high + (maps - 1) * GAP};
}

/** The size of a map, in pixels. */
function mapSize({rows, columns, line, cell}: MapLayout): {wide: number; high: number} {
  return {wide: line * cell, high: rows * Math.ceil(columns / line) * cell};
}

/** The left upper corner of a cell. */
export function placeOf(layout: MapLayout, {map, row, column}: Cell): {x: number; y: number} {
  const {cell, across, columns, line, top, left} = layout;
  const {wide, high} = mapSize(layout);
  const x = (map % across) * (wide + GAP) + ((column - left) % line) * cell;
  const y = Math.floor(map / across) * (high + GAP) + ((row - top) * Math.ceil(columns / line) + Math.floor((column - left) / line)) * cell;
  return {x, y};
}

/** Whether a cell is in the part that is shown. */
export function isOnShow({maps, rows, columns, top, left}: MapLayout, {map, row, column}: Cell): boolean {
  return map >= 0 && map < maps && row >= top && row < top + rows && column >= left && column < left + columns;
}

/** The cell at a pixel; null in a gap. */
export function cellAt(layout: MapLayout, x: number, y: number): Cell | null {
  const {cell, across, maps} = layout;
  const {wide, high} = mapSize(layout);
  const [right, down] = [Math.floor(x / (wide + GAP)), Math.floor(y / (high + GAP))];
  const map = down * across + right;
  const [inX, inY] = [x - right * (wide + GAP), y - down * (high + GAP)];
  if (x < 0 || y < 0 || right >= across || map >= maps || inX >= wide || inY >= high) return null;
  return cellIn(layout, map, Math.floor(inX / cell), Math.floor(inY / cell));
}

/** The cell of a map in a line, and at a place in that; null beyond the end of a row. */
function cellIn({columns, line, top, left}: MapLayout, map: number, at: number, ofLine: number): Cell | null {
  const lines = Math.ceil(columns / line);
  const column = (ofLine % lines) * line + at;
  return column < columns ? {map, row: top + Math.floor(ofLine / lines), column: left + column} : null;
}

/** The cell of a map that is nearest to a pixel. */
export function nearestCell(layout: MapLayout, map: number, x: number, y: number): Cell {
  const {rows, columns, top, left, cell, line} = layout;
  const corner = placeOf(layout, {map, row: top, column: left});
  const within = (at: number, count: number) => Math.min(Math.max(Math.floor(at / cell), 0), count - 1);
  const [at, ofLine] = [within(x - corner.x, line), within(y - corner.y, rows * Math.ceil(columns / line))];
  return cellIn(layout, map, at, ofLine) ?? {map, row: top + Math.floor(ofLine / Math.ceil(columns / line)), column: left + columns - 1};
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
