/** Tensors that were kept whole, as `api/tensors`, `api/tensor` and `api/tensor-line` send them: see http_api.md. */

import type {Packed} from './pack';
import {arrayOf, PackError} from './pack';
import type {SeriesInfo} from './types';

/** Which tensor; a gradient is one of its own. */
export type TensorKey = Pick<SeriesInfo, 'module' | 'call' | 'role' | 'path' | 'kind'>;

/** What is known of a kept tensor without reading it. */
export interface KeptInfo extends TensorKey {
  dtype: string;
  /** Of the whole tensor. */
  shape: number[];
  /** `[kept samples, ...]` along `batch_dim`. */
  kept_shape: number[];
  batch_dim: number | null;
  samples: number[];
  /** Of each of `samples`; empty if there are none. */
  categories: string[];
  /** Of a gradient: the name of its backward pass; empty if that was given none. */
  loss: string;
  /** What it is to the training. */
  named: NamedKind;
  node: string;
}

export type NamedKind = 'input' | 'parameter' | 'intermediate' | 'target' | 'loss';

/** Which named tensors were computed from which. */
export interface TensorGraph {
  step: number;
  tensors: (Pick<TensorKey, 'module' | 'call' | 'role' | 'path'> & {kind: NamedKind; node: string})[];
  /** Tensors that are shown together, as numbers in `tensors`. */
  nodes: {key: string; name: string; kind: NamedKind; module: string; call: number | null; tensors: number[]}[];
  /** Source, target, and whether gradient flows. */
  edges: [source: number, target: number, gradient: 0 | 1][];
}

/** Which tensors were kept at which steps. */
export interface KeptTensors {
  version: string;
  bytes: number;
  ranks: number[];
  /** Ascending. */
  steps: number[];
  /** Earlier steps that are not listed. */
  left_out: number;
  /** In an exported page: what it does not have, as a sentence. */
  note?: string;
  /** Of each of `steps`; null without. */
  labels: (string | null)[];
  /** By step: why it was kept, if something asked for it. */
  reasons: Record<string, string[]>;
  /** Which of `layouts` was kept at each of `steps`. */
  layout: number[];
  /** Numbers of tensors. */
  layouts: number[][];
  tensors: KeptInfo[];
}

export const NOTHING_KEPT: KeptTensors = {version: '', bytes: 0, ranks: [0], steps: [], left_out: 0, labels: [], reasons: {}, layout: [], layouts: [], tensors: []};

/** The elements, or what is known of each neuron over the whole batch. */
export type What = 'values' | 'mean' | 'std' | 'largest';
/** Of complex numbers. */
export type ComplexPart = 'abs' | 'real' | 'imag' | 'angle';

export interface WantedTensor extends TensorKey {
  step: number;
  what: What;
  part: ComplexPart;
  rank?: number;
  loss?: string;
}

export interface WantedPart extends WantedTensor {
  /** An index, a range or `:` for each dimension. */
  at: string;
  /** Dimensions along which neighbours may be merged. */
  shrink: number[];
}

export interface Summary {
  count: number;
  nan: number;
  positive_infinity: number;
  negative_infinity: number;
  /** The least finite element; null without any. */
  low: number | null;
  high: number | null;
  mean: number | null;
  std: number | null;
  /** Magnitude that 99 of 100 finite elements do not exceed. */
  typical: number | null;
}

/** What colours are scaled by. */
export type Bounds = Pick<Summary, 'low' | 'high' | 'typical'>;

export type Numbers = Float32Array | Float64Array | Uint8Array;

/** A part of a tensor. */
export interface TensorPart {
  step: number;
  dtype: string;
  /** Its numbers cannot be negative, whatever their type. */
  isMagnitude?: boolean;
  shape: number[];
  /** Of all that was kept of it, or of the neurons. */
  kept_shape: number[];
  batch_dim: number | null;
  samples: number[];
  categories: string[];
  rank: number;
  gradient_scale: number | null;
  start: number[];
  stop: number[];
  /** How many neighbours along each dimension an entry stands for. */
  factors: number[];
  is_rounded: boolean;
  /** Of all kept elements. */
  summary: Summary;
  /** Those of what is beside it, too; null for its own. */
  bounds: Bounds | null;
  /** Entries along each dimension. */
  size: number[];
  /** Elements; where neighbours are merged, their mean. */
  values: Numbers;
  merged: Merged | null;
}

export interface Merged {
  low: Float32Array;
  high: Float32Array;
  /** How many of the neighbours are NaN or infinite. */
  bad: Float32Array;
  /** The elements of the largest magnitude, by index in the order of the selection. */
  topIndex: Float64Array;
  topValue: Numbers;
}

export interface WantedLine extends WantedTensor {
  over: 'steps' | 'calls';
  /** Of one element; null for facts of all. */
  index: string | null;
  /** Facts of the samples of each category. */
  by?: 'category';
}

/** Over steps or calls. NaN stands for what is not known. */
export interface TensorLine {
  step: Float64Array;
  call: Float64Array;
  /** By name: `value`; or `mean`, `std`, `low`, `high` and `bad`; or, by category, `count`, `mean` and `std`. */
  columns: Map<string, Float64Array>;
  /** Of each row, by category; else empty. */
  categories: string[];
  /** Steps where the tensor is damaged, or smaller. */
  skipped: number;
}

type PartMeta = Omit<TensorPart, 'size' | 'values' | 'merged' | 'bounds'>;

/** Reads the binary answer of `api/tensor`. */
export function partOf(packed: Packed<PartMeta>): TensorPart {
  const name = packed.arrays.has('values') ? 'values' : 'mean';
  const values = numbersIn(packed, name);
  const size = packed.arrays.get(name)?.shape ?? [];
  if (name === 'values') return {...packed.meta, bounds: null, size, values, merged: null};
  const floats = (one: string): Float32Array => arrayOf(packed, one, Float32Array);
  const [topIndex, topValue] = [arrayOf(packed, 'top.index', Float64Array), numbersIn(packed, 'top.value')];
  return {...packed.meta, bounds: null, size, values, merged: {low: floats('low'), high: floats('high'), bad: floats('bad'), topIndex, topValue}};
}

function numbersIn(packed: Packed<unknown>, name: string): Numbers {
  const values = packed.arrays.get(name)?.values;
  if (values instanceof Float32Array || values instanceof Float64Array || values instanceof Uint8Array) return values;
  throw new PackError(`binary answer has no numbers called ${name}`);
}

const COLUMNS = ['value', 'count', 'mean', 'std', 'low', 'high', 'bad'];

/** Reads one binary answer of `api/tensor-line`. */
export function lineOf(packed: Packed<{next: number | null; skipped: number; categories?: string[]}>): TensorLine {
  const floats = (name: string): Float64Array => arrayOf(packed, name, Float64Array);
  const columns = COLUMNS.flatMap((name) => (packed.arrays.has(name) ? [[name, floats(name)] as const] : []));
  const categories = packed.arrays.has('category') ? Array.from(floats('category'), (at) => packed.meta.categories?.[at] ?? '') : [];
  return {step: floats('step'), call: floats('call'), columns: new Map(columns), categories, skipped: packed.meta.skipped};
}

/** One line, of which `rest` is the continuation. */
export function joinedLine(line: TensorLine, rest: TensorLine): TensorLine {
  const both = (one: Float64Array, other: Float64Array): Float64Array => Float64Array.of(...one, ...other);
  const columns = [...line.columns].map(([name, values]) => [name, both(values, rest.columns.get(name) ?? new Float64Array(0))] as const);
  return {step: both(line.step, rest.step), call: both(line.call, rest.call), columns: new Map(columns), categories: [...line.categories, ...rest.categories], skipped: line.skipped + rest.skipped};
}
