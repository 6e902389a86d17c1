/** The kept tensors that an exported page has in it: what `server/page/tensors.py` wrote. */

import {group} from 'd3-array';
import type {PackedArray, Packed} from './pack';
import {PackError} from './pack';
import {selected, spansOf, summaryOf} from './selection';
import type {KeptInfo, KeptTensors, Numbers, TensorGraph, TensorLine, TensorPart, WantedLine, WantedPart, WantedTensor} from './tensors';

/** The array of this type, and the first of its elements. */
type Place = [dtype: string, offset: number];

interface Entry {
  /** Numbers in `kept.tensors` and in `facts`. */
  tensor: number;
  facts: number;
  values: Place;
  imaginary?: Place;
  /** Mean, standard deviation and largest magnitude of each neuron, `[3, neurons]`. */
  statistics?: Place;
  is_rounded?: boolean;
}

export interface PageTensors {
  kept: KeptTensors;
  facts: (KeptInfo & {rank: number; gradient_scale: number | null})[];
  /** By step. */
  at: Record<string, Entry[]>;
  /** By step: the number of its graph. */
  graph_of: Record<string, number | null>;
  graphs: TensorGraph[];
}

interface Found {
  numbers: Numbers;
  /** Of the numbers, without the batch if they are statistics. */
  size: number[];
  entry: Entry;
  facts: PageTensors['facts'][number];
}

const STATISTICS = ['mean', 'std', 'largest'];

/** A part of a tensor, as `api/tensor` gives it. */
export function partIn(packed: Packed<unknown>, prefix: string, page: PageTensors, wanted: WantedPart): TensorPart {
  const {numbers, size, entry, facts} = numbersOf(packed, prefix, page, wanted);
  const {spans, factors, size: entries, values, merged} = selected(numbers, size, spansOf(wanted.at, size), wanted.shrink);
  return {
    step: wanted.step,
    dtype: facts.dtype,
    shape: facts.shape,
    kept_shape: size,
    batch_dim: wanted.what === 'values' ? facts.batch_dim : null,
    samples: facts.samples,
    categories: facts.categories,
    rank: facts.rank,
    gradient_scale: facts.gradient_scale,
    start: spans.map(([start]) => start),
    stop: spans.map(([, stop]) => stop),
    factors,
    is_rounded: wanted.what === 'values' && entry.is_rounded === true,
    summary: summaryOf(numbers),
    bounds: null,
    size: entries,
    values,
    merged,
  };
}

/** An element, or facts of all elements, over the steps or calls of the page, as `api/tensor-line` gives it. */
export function lineIn(packed: Packed<unknown>, prefix: string, page: PageTensors, {over, index, by, ...wanted}: WantedLine): TensorLine {
  const asked = over === 'calls' ? callsOf(page, wanted) : page.kept.steps.filter((step) => entryOf(page, {...wanted, step}) !== null).map((step) => ({...wanted, step}));
  const names = by === 'category' ? ['count', 'mean', 'std'] : index === null ? ['mean', 'std', 'low', 'high', 'bad'] : ['value'];
  const rows: {one: WantedTensor; row: number[]; category?: string}[] = [];
  let skipped = 0;
  for (const one of asked) {
    try {
      const found = numbersOf(packed, prefix, page, one);
      if (by === 'category') rows.push(...categoryRows(found).map((row) => ({one, ...row})));
      else rows.push({one, row: rowOf(found, index)});
    } catch {
      skipped++; // it is smaller there
    }
  }
  const columns = new Map(names.map((name, at) => [name, Float64Array.from(rows, ({row}) => row[at] as number)]));
  return {step: Float64Array.from(rows, ({one}) => one.step), call: Float64Array.from(rows, ({one}) => one.call ?? 0), columns, categories: rows.flatMap(({category}) => category ?? []), skipped};
}

/** The dependency graph of a step. */
export function graphIn({graphs, graph_of}: PageTensors, step: number): TensorGraph {
  const found = graphs[graph_of[step] ?? -1];
  if (found === undefined) throw new Error(`This page has no dependency graph of step ${step}.`);
  return {...found, step};
}

/** For each category of the samples: how many have it, and the mean and standard deviation of their means. */
function categoryRows({numbers, size, facts}: Found): {category: string; row: number[]}[] {
  const batch = facts.batch_dim;
  if (batch === null || facts.categories.length === 0) throw new Error('The samples of this tensor have no categories.');
  const meanOf = (at: number): number =>
    summaryOf(selected(numbers, size, size.map((length, dim) => (dim === batch ? [at, at + 1] : [0, length])), [], Infinity).values).mean ?? NaN;
  return [...group(facts.categories.keys(), (at) => facts.categories[at] as string)].map(([category, own]) => {
    const {mean, std} = summaryOf(Float64Array.from(own, meanOf));
    return {category, row: [own.length, mean ?? NaN, std ?? NaN]};
  });
}

function rowOf({numbers, size}: Found, index: string | null): number[] {
  if (index !== null) return [...selected(numbers, size, spansOf(index, size), []).values];
  const {mean, std, low, high, nan, positive_infinity, negative_infinity} = summaryOf(numbers);
  return [...[mean, std, low, high].map((one) => one ?? NaN), nan + positive_infinity + negative_infinity];
}

function callsOf(page: PageTensors, wanted: WantedTensor): WantedTensor[] {
  const calls = (page.at[wanted.step] ?? []).flatMap(({facts}) => {
    const one = page.facts[facts] as KeptInfo;
    return one.call !== null && isSame(one, {...wanted, call: one.call}) ? [one.call] : [];
  });
  return calls.sort((a, b) => a - b).map((call) => ({...wanted, call}));
}

function entryOf(page: PageTensors, wanted: WantedTensor): Entry | null {
  return page.at[wanted.step]?.find(({facts}) => isSame(page.facts[facts] as KeptInfo, wanted)) ?? null;
}

function isSame(one: KeptInfo, {module, call, role, path, kind, loss = ''}: WantedTensor): boolean {
  return one.module === module && one.call === call && one.role === role && one.path === path && one.kind === kind && one.loss === loss;
}

function numbersOf(packed: Packed<unknown>, prefix: string, page: PageTensors, wanted: WantedTensor): Found {
  const entry = entryOf(page, wanted);
  if (entry === null) throw new Error(`This page does not have the tensor at step ${wanted.step}.`);
  const facts = page.facts[entry.facts] as Found['facts'];
  if (wanted.what !== 'values') {
    const size = facts.kept_shape.filter((_, dim) => dim !== facts.batch_dim);
    const count = countOf(size);
    if (entry.statistics === undefined) throw new Error(`The tensor has no batch dimension, and therefore no ${wanted.what} over the batch.`);
    const [dtype, offset] = entry.statistics;
    return {numbers: taken(packed, prefix, [dtype, offset + STATISTICS.indexOf(wanted.what) * count], count, ''), size, entry, facts};
  }
  const count = countOf(facts.kept_shape);
  const values = taken(packed, prefix, entry.values, count, facts.dtype);
  const numbers = entry.imaginary === undefined ? values : real(values, taken(packed, prefix, entry.imaginary, count, facts.dtype), wanted.part);
  return {numbers, size: facts.kept_shape, entry, facts};
}

function countOf(size: readonly number[]): number {
  return size.reduce((count, length) => count * length, 1);
}

/** Numbers that stand in one of the page's arrays; integers in the type in which a server sends them. */
function taken(packed: Packed<unknown>, prefix: string, [dtype, offset]: Place, count: number, of: string): Numbers {
  const values: PackedArray['values'] | undefined = packed.arrays.get(`${prefix}tensors.${dtype}`)?.values;
  if (values === undefined || offset + count > values.length) throw new PackError('The page has no numbers of this tensor.');
  const part = values.subarray(offset, offset + count);
  if (part instanceof Float32Array || part instanceof Float64Array) return part;
  return part instanceof Uint8Array && (of === 'bool' || of === 'uint8') ? part : Float64Array.from(part);
}

function real(re: Numbers, im: Numbers, part: WantedTensor['part']): Numbers {
  if (part === 'real') return re;
  if (part === 'imag') return im;
  const of = part === 'abs' ? Math.hypot : (x: number, y: number): number => Math.atan2(y, x);
  return re.map((x, at) => of(x, im[at] as number)) as Numbers;
}
