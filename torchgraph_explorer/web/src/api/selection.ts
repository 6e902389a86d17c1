/** A part of a tensor that a page has in it: what `server/selection.py` does for a server. Pure. */

import type {Merged, Numbers, Summary} from './tensors';

/** Elements of an answer at most. */
const MOST_ELEMENTS = 1 << 18;

/** Elements that a quantile is taken from. */
const SAMPLED = 1 << 18;

/** Elements of the largest magnitude that are named where not all can be shown. */
const TOP = 256;

/** The first index, and the one after the last, along each dimension. */
export type Spans = readonly (readonly [start: number, stop: number])[];

export interface Selection {
  spans: Spans;
  /** How many neighbours along each dimension an entry stands for. */
  factors: number[];
  /** Entries along each dimension. */
  size: number[];
  values: Numbers;
  merged: Merged | null;
}

/** What `0,:,2:10` selects: an index, a range, or everything, for each dimension. */
export function spansOf(text: string, shape: readonly number[]): Spans {
  const parts = text === '' ? shape.map(() => ':') : text.split(',');
  if (parts.length !== shape.length) throw new Error(`at=${text} selects along ${parts.length} dimensions; the tensor has ${shape.length}.`);
  return shape.map((size, dim) => {
    const [, first, colon, last] = /^(\d*)(:?)(\d*)$/.exec(parts[dim] as string) ?? [];
    const start = first !== undefined && (first !== '' || colon !== '') ? Number(first) : -1;
    const stop = colon === '' ? start + 1 : last === '' ? size : Number(last);
    if (start < 0 || start > stop || stop > size) throw new Error(`${parts[dim]} is no index or range along a dimension of size ${size}.`);
    return [start, stop];
  });
}

/** The elements in `spans`, in at most `most` entries: neighbours along the dimensions in `shrink` are merged. */
export function selected(values: Numbers, shape: readonly number[], spans: Spans, shrink: readonly number[], most: number = MOST_ELEMENTS): Selection {
  const extent = spans.map(([start, stop]) => stop - start);
  const part = partIn(values, shape, spans, extent);
  const factors = factorsOf(extent, shrink, most);
  const size = extent.map((length, dim) => Math.ceil(length / (factors[dim] as number)));
  if (factors.every((factor) => factor === 1)) return {spans, factors, size, values: part, merged: null};
  const {mean, ...merged} = mergedIn(part, extent, factors, size);
  return {spans, factors, size, values: mean, merged: {...merged, ...topIn(part)}};
}

/** A copy of the elements in `spans`, in order. */
function partIn(values: Numbers, shape: readonly number[], spans: Spans, extent: readonly number[]): Numbers {
  const part = values.slice(0, extent.reduce((count, length) => count * length, 1));
  if (part.length === values.length && extent.every((length, dim) => length === shape[dim])) return part;
  const strides = stridesOf(shape);
  const base = spans.reduce((sum, [start], dim) => sum + start * (strides[dim] as number), 0);
  const index = extent.map(() => 0);
  for (let i = 0, at = base; i < part.length; i++) {
    part[i] = values[at] as number;
    for (let dim = extent.length - 1; dim >= 0; dim--) {
      at += strides[dim] as number;
      if (++(index[dim] as number) < (extent[dim] as number)) break;
      at -= (extent[dim] as number) * (strides[dim] as number);
      index[dim] = 0;
    }
  }
  return part;
}

/** How far apart neighbours along each dimension are in memory, in elements. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = shape.map(() => 1);
  for (let dim = shape.length - 2; dim >= 0; dim--) strides[dim] = (strides[dim + 1] as number) * (shape[dim + 1] as number);
  return strides;
}

/** Powers of two by which each dimension is shrunk, the longest first. */
function factorsOf(extent: readonly number[], shrink: readonly number[], most: number): number[] {
  const factors = extent.map(() => 1);
  const length = (dim: number): number => Math.ceil((extent[dim] as number) / (factors[dim] as number));
  while (extent.reduce((count, _, dim) => count * length(dim), 1) > most) {
    const longest = shrink.reduce<number | null>((best, dim) => (best === null || length(dim) > length(best) ? dim : best), null);
    if (longest === null || length(longest) <= 1) throw new Error(`More than ${most.toLocaleString('en')} elements are selected.`);
    (factors[longest] as number) *= 2;
  }
  return factors;
}

function mergedIn(part: Numbers, extent: readonly number[], factors: readonly number[], size: readonly number[]): Pick<Merged, 'low' | 'high' | 'bad'> & {mean: Float32Array} {
  const count = size.reduce((total, length) => total * length, 1);
  const [sums, good] = [new Float64Array(count), new Float64Array(count)];
  const [low, high, bad] = [new Float32Array(count).fill(NaN), new Float32Array(count).fill(NaN), new Float32Array(count)];
  const strides = stridesOf(size);
  const index = extent.map(() => 0);
  for (let i = 0; i < part.length; i++) {
    const at = index.reduce((sum, one, dim) => sum + Math.floor(one / (factors[dim] as number)) * (strides[dim] as number), 0);
    const value = part[i] as number;
    if (Number.isFinite(value)) {
      (sums[at] as number) += value;
      (good[at] as number)++;
      if (!(value >= (low[at] as number))) low[at] = value;
      if (!(value <= (high[at] as number))) high[at] = value;
    } else {
      (bad[at] as number)++;
    }
    for (let dim = extent.length - 1; dim >= 0; dim--) {
      if (++(index[dim] as number) < (extent[dim] as number)) break;
      index[dim] = 0;
    }
  }
  const mean = Float32Array.from(sums, (sum, at) => sum / (good[at] as number));
  return {mean, low, high, bad};
}

/** The elements of the largest magnitude. NaN and infinity come first. */
function topIn(part: Numbers): Pick<Merged, 'topIndex' | 'topValue'> {
  const magnitude = (at: number): number => {
    const value = Math.abs(part[at] as number);
    return Number.isNaN(value) ? Infinity : value;
  };
  let best: number[] = [];
  let least = -1;
  const cut = (): void => {
    best = best.sort((a, b) => magnitude(b) - magnitude(a) || a - b).slice(0, TOP);
    least = best.length < TOP ? -1 : magnitude(best.at(-1) as number);
  };
  for (let at = 0; at < part.length; at++) {
    if (magnitude(at) > least) best.push(at);
    if (best.length >= 2 * TOP) cut();
  }
  cut();
  return {topIndex: Float64Array.from(best), topValue: part.slice(0, best.length).map((_, i) => part[best[i] as number] as number) as Numbers};
}

/** Facts of all elements. Those that no finite element says are null. */
export function summaryOf(values: Numbers): Summary {
  let [finite, nan, positive, total, squares, low, high] = [0, 0, 0, 0, 0, Infinity, -Infinity];
  for (const value of values) {
    if (Number.isNaN(value)) nan++;
    else if (value === Infinity) positive++;
    else if (value !== -Infinity) {
      finite++;
      total += value;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const mean = total / finite;
  for (const value of values) if (Number.isFinite(value)) squares += (value - mean) ** 2;
  return {
    count: values.length,
    nan,
    positive_infinity: positive,
    negative_infinity: values.length - finite - nan - positive,
    low: numberOf(low),
    high: numberOf(high),
    mean: numberOf(mean),
    std: finite > 0 ? numberOf(Math.sqrt(squares / finite)) : null,
    typical: typicalOf(values),
  };
}

/** Magnitude that 99 of 100 finite elements do not exceed, from a sample of them. */
function typicalOf(values: Numbers): number | null {
  const every = Math.max(1, Math.ceil(values.length / SAMPLED));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += every) if (Number.isFinite(values[at])) sample.push(Math.abs(values[at] as number));
  const sorted = Float64Array.from(sample).sort();
  const place = 0.99 * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below === undefined || above === undefined ? null : numberOf(below + (place - Math.floor(place)) * (above - below));
}

function numberOf(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
