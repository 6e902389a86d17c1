/** Parts of a tensor: a rectangle of one of its maps, an element that is written as text, and the part that is on show. */

import {elementOf} from './maps';
import type {Cell, Span} from './maps';
import type {Element} from './types';

/** The rectangle between two cells; its map is that of the first one. */
export function spanOf(one: Cell, other: Cell): Span {
  const range = (a: number, b: number): [number, number] => [Math.min(a, b), Math.max(a, b) + 1];
  return {rows: range(one.row, other.row), columns: range(one.column, other.column)};
}

/** The rectangle as a region of the tensor; a single cell is an element. */
export function regionOf(shape: readonly number[], lead: readonly string[], map: number, {rows, columns}: Span): Element {
  const first = elementOf(shape, lead, {map, row: rows[0], column: columns[0]});
  const part = ([start, stop]: readonly [number, number]): number | [number, number] => (stop - start === 1 ? start : [start, stop]);
  const last = [part(rows), part(columns)].slice(Math.max(0, 2 - shape.length));
  return [...first.slice(0, first.length - last.length), ...last];
}

/** The rectangle that an element or region covers on a map. */
export function spanOfElement(shape: readonly number[], element: Element): Span {
  const range = (part: Element[number] | undefined, size: number): [number, number] =>
    part === undefined || part === null ? [0, size] : typeof part === 'number' ? [part, part + 1] : [part[0], part[1]];
  const [rows, columns] = shape.length > 1 ? shape.slice(-2) : [1, shape[0] ?? 1];
  const [row, column] = shape.length > 1 ? element.slice(-2) : [0, element[0]];
  return {rows: range(row, rows as number), columns: range(column, columns as number)};
}

/** Elements in a region. */
export function countOf(shape: readonly number[], element: Element): number {
  return element.reduce((count: number, part, i) => count * (part === null ? (shape[i] as number) : typeof part === 'number' ? 1 : part[1] - part[0]), 1);
}

/** The element or region that `text` names, such as `0, 3, 2:5, :`; or a sentence on what is wrong with it. */
export function elementFrom(text: string, shape: readonly number[]): Element | string {
  const parts = text.replace(/[[\]]/g, '').split(',').map((part) => part.trim());
  if (shape.length === 0) return [];
  if (parts.length !== shape.length) return `${shape.length} indices are needed, one for each of [${shape.join(', ')}]; given are ${text.trim() === '' ? 0 : parts.length}.`;
  const element: Element = [];
  for (const [i, part] of parts.entries()) {
    const size = shape[i] as number;
    const found = partFrom(part, size);
    if (found === undefined) return `${part === '' ? 'Nothing' : `'${part}'`} is no index into a dimension of size ${size}. Write a number, a range such as 0:${size}, or : for all.`;
    element.push(found);
  }
  return element;
}

function partFrom(text: string, size: number): Element[number] | undefined {
  if (text === ':' || text === '·') return null;
  const match = /^(-?\d+)(?:\s*:\s*(-?\d+))?$/.exec(text);
  const range = /^(-?\d*)\s*:\s*(-?\d*)$/.exec(text);
  const at = (one: string, missing: number) => (one === '' ? missing : Number(one) < 0 ? Number(one) + size : Number(one));
  if (match !== null && match[2] === undefined) {
    const index = at(match[1] as string, 0);
    return index >= 0 && index < size ? index : undefined;
  }
  if (range === null) return undefined;
  const [start, stop] = [at(range[1] as string, 0), at(range[2] as string, size)];
  return start >= 0 && start < stop && stop <= size ? [start, stop] : undefined;
}
