/** Which places of two tensors correspond: each is laid over the first one by a stride and an offset, as padding shifts it. */

import type {Span} from './maps';

/** Along one dimension: element `i` lies at `offset + stride * i` of the first tensor, in its elements. */
export interface Axis {
  stride: number;
  offset: number;
}

export interface Lining {
  rows: Axis;
  columns: Axis;
}

/** Both laid over each other with their centres at one place, by a whole stride. */
export function axisFor(size: number, reference: number): Axis {
  const ratio = reference / size;
  const stride = ratio >= 1 ? Math.round(ratio) : 1 / Math.round(1 / ratio);
  return {stride, offset: (reference - 1 - stride * (size - 1)) / 2};
}

export function liningFor(shape: readonly number[], reference: readonly number[]): Lining {
  const [rows = 1, columns = 1] = shape.slice(-2);
  const [ownRows = 1, ownColumns = 1] = reference.slice(-2);
  return {rows: axisFor(rows, ownRows), columns: axisFor(columns, ownColumns)};
}

/** The elements that overlap with those of another tensor; one at least, the nearest. */
export function corresponding([start, stop]: readonly [number, number], from: Axis, to: Axis, size: number): [number, number] {
  const low = from.offset + from.stride * (start - 0.5);
  const high = from.offset + from.stride * (stop - 0.5);
  const near = 1e-6;
  const first = Math.floor((low - to.offset) / to.stride + 0.5 + near);
  const last = Math.ceil((high - to.offset) / to.stride + 0.5 - near);
  const begin = Math.min(Math.max(first, 0), size - 1);
  return [begin, Math.max(Math.min(last, size), begin + 1)];
}

/** The part of a tensor with these rows and columns that lies over a part of another one. */
export function correspondingSpan(span: Span, from: Lining, to: Lining, shape: readonly number[]): Span {
  const [rows = 1, columns = 1] = shape.slice(-2);
  return {rows: corresponding(span.rows, from.rows, to.rows, rows), columns: corresponding(span.columns, from.columns, to.columns, columns)};
}
