/** Codes of the rows on show, and which columns each pixel holds. Pure; it is drawn again with every frame of a zoom. */

import {isBad} from './codes';
import type {XrayRow} from './tree';

/** The x-ray of a stretch of steps, of one statistic. */
export interface Xray {
  statistic: string;
  /** In the order of execution. */
  modules: string[];
  /** First and last step of each column. */
  first: Float64Array;
  last: Float64Array;
  /** `[modules, columns]`. */
  codes: Uint16Array;
}

/** The largest codes of the rows that each row stands for, `[rows, columns]`. */
export function folded({codes, first}: Pick<Xray, 'codes' | 'first'>, rows: readonly XrayRow[]): Uint16Array {
  const columns = first.length;
  const found = new Uint16Array(rows.length * columns);
  rows.forEach((row, at) => row.rows.forEach((one) => addLargest(found, at * columns, codes, one * columns, columns)));
  return found;
}

function addLargest(into: Uint16Array, to: number, from: Uint16Array, at: number, count: number): void {
  for (let i = 0; i < count; i++) if (from[at + i]! > into[to + i]!) into[to + i] = from[at + i]!;
}

/** As many rows as there are pixels at most: the largest codes of those that share one. */
export function squeezed(matrix: Uint16Array, columns: number, most: number): {matrix: Uint16Array; rows: number} {
  const rows = columns === 0 ? 0 : matrix.length / columns;
  if (rows <= most || most < 1) return {matrix, rows};
  const found = new Uint16Array(most * columns);
  for (let row = 0; row < rows; row++) addLargest(found, Math.floor((row * most) / rows) * columns, matrix, row * columns, columns);
  return {matrix: found, rows: most};
}

/** A stretch of time, in steps. */
export interface Domain {
  from: number;
  to: number;
}

/** Where each column begins, and where the last one ends. */
export function edgesOf({first, last}: Pick<Xray, 'first' | 'last'>): Float64Array {
  const count = first.length;
  const edges = new Float64Array(count + 1);
  edges.set(first);
  const gap = count > 1 ? (first[count - 1]! - first[0]!) / (count - 1) : 1;
  edges[count] = count === 0 ? 0 : Math.max(last[count - 1]! + Math.min(1, gap), first[count - 1]! + gap);
  return edges;
}

/** All of time. */
export function wholeOf(edges: Float64Array): Domain {
  return edges.length < 2 ? {from: 0, to: 1} : {from: edges[0]!, to: edges.at(-1)!};
}

/** The columns of each pixel, from `starts` up to `stops`; every column in sight is in at least one pixel. */
export function columnsOfPixels(edges: Float64Array, {from, to}: Domain, width: number): {starts: Int32Array; stops: Int32Array} {
  const [starts, stops] = [new Int32Array(width), new Int32Array(width)];
  const count = edges.length - 1;
  const perPixel = (to - from) / width;
  let at = 0;
  for (let pixel = 0; pixel < width; pixel++) {
    const [left, right] = [from + pixel * perPixel, from + (pixel + 1) * perPixel];
    while (at < count && edges[at + 1]! <= left) at++;
    let stop = at;
    while (stop < count && edges[stop]! < right) stop++;
    starts[pixel] = at;
    stops[pixel] = stop;
  }
  return {starts, stops};
}

/** Colours of all pixels, `[rows, width]`, by a table with a colour for each code. */
export function paint(
  matrix: Uint16Array,
  columns: number,
  pixels: {starts: Int32Array; stops: Int32Array},
  colours: Uint32Array,
  into: Uint32Array,
): void {
  const {starts, stops} = pixels;
  const width = starts.length;
  const rows = width === 0 ? 0 : into.length / width;
  for (let row = 0; row < rows; row++) {
    const [base, out] = [row * columns, row * width];
    for (let pixel = 0; pixel < width; pixel++) {
      let code = 0;
      for (let column = base + starts[pixel]!, stop = base + stops[pixel]!; column < stop; column++) if (matrix[column]! > code) code = matrix[column]!;
      into[out + pixel] = colours[code]!;
    }
  }
}

/** Neighbouring cells of a row that are not finite, from the column `first` to `last`. */
export interface BadRun {
  row: number;
  first: number;
  last: number;
}

/** Where cells of a matrix are not finite: at most so many places. */
export function badRuns(codes: Uint16Array, columns: number, most: number): BadRun[] {
  const found: BadRun[] = [];
  for (let cell = 0; cell < codes.length; cell++) {
    if (!isBad(codes[cell]!)) continue;
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    const before = found.at(-1);
    if (before?.row === row && before.last === column - 1) before.last = column;
    else if (found.length === most) break;
    else found.push({row, first: column, last: column});
  }
  return found;
}

/** The column that holds a step; -1 beside all. */
export function columnAt(edges: Float64Array, step: number): number {
  const count = edges.length - 1;
  if (count < 1 || step < edges[0]! || step >= edges[count]!) return -1;
  let [low, high] = [0, count - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle]! <= step) low = middle;
    else high = middle - 1;
  }
  return low;
}

const LEAST_STEPS = 2;

/** The domain magnified `factor` times around `step`, within `whole`. */
export function zoomed({from, to}: Domain, factor: number, step: number, whole: Domain): Domain {
  const all = whole.to - whole.from;
  const length = Math.min(all, Math.max(Math.min(LEAST_STEPS, all), (to - from) / factor));
  const share = to > from ? (step - from) / (to - from) : 0.5;
  return shifted({from: step - share * length, to: step + (1 - share) * length}, 0, whole);
}

/** The domain moved by so many steps, within `whole`. */
export function shifted({from, to}: Domain, by: number, whole: Domain): Domain {
  const start = Math.max(whole.from, Math.min(whole.to - (to - from), from + by));
  return {from: start, to: start + (to - from)};
}
