/** Shapes in which some dimensions varied, and how they are written. `torchgraph_explorer/shapes.py` writes them alike. */

import type {ModuleGraph, TensorInfo} from '../api/types';

type Shaped = Pick<TensorInfo, 'shape' | 'varied'>;

/** A letter for each dimension that varied, by what tells such dimensions apart (see `keyOf`). */
export type Letters = ReadonlyMap<string, string>;

interface Open {
  /** Number of the dimension. */
  at: number;
  key: string;
  /** Sizes it was seen with, the first ones that were; empty where that is not known. */
  sizes: readonly number[];
}

/** The dimensions that varied. They are taken for one if they were seen with the same sizes, in turn, else by their number. */
function openOf({shape, varied = []}: Shaped): Open[] {
  return shape
    .flatMap((size, at) => (size === null ? [at] : []))
    .map((at, i) => ({at, sizes: varied[i] ?? []}))
    .map(({at, sizes}) => ({at, sizes, key: sizes.length > 0 ? sizes.join() : `#${at}`}));
}

const OTHERS = 'LABCDEFGHIJKMOPQRSTUVWXYZ';

/** `N` is the first one that comes first in a shape, which the batch usually does; then come `L`, `A`, `B` and so on. */
function lettersFor(tensors: readonly Shaped[]): Letters {
  const all = tensors.flatMap(openOf);
  const batch = all.find(({at}) => at === 0)?.key;
  const others = new Set(all.map(({key}) => key).filter((key) => key !== batch));
  const named = [...others].map((key, i): [string, string] => [key, letter(i)]);
  return new Map(batch === undefined ? named : [[batch, 'N'], ...named]);
}

function letter(number: number): string {
  const turn = Math.floor(number / OTHERS.length);
  return `${OTHERS[number % OTHERS.length]}${turn === 0 ? '' : turn + 1}`;
}

const known = new WeakMap<ModuleGraph, Letters>();

/** A letter for each dimension that varied in a graph. */
export function lettersOf(graph: ModuleGraph): Letters {
  const letters = known.get(graph) ?? lettersFor(tensorsOf(graph));
  known.set(graph, letters);
  return letters;
}

function tensorsOf({calls, nodes}: ModuleGraph): TensorInfo[] {
  return [...calls.flatMap(({inputs, outputs}) => [...inputs, ...outputs]), ...nodes.flatMap(({tensor}) => tensor ?? [])];
}

/** `N×3×8×8`; of a zero-dimensional tensor `scalar`. */
export function shapeText(tensor: Shaped, letters: Letters): string {
  const names = new Map(openOf(tensor).map(({at, key}) => [at, letters.get(key) ?? 'N']));
  return tensor.shape.length === 0 ? 'scalar' : tensor.shape.map((size, at) => size ?? names.get(at)).join('×');
}

/** `N varied: first 32, then 7`, for each letter in the tensor's shape; empty when nothing varied. */
export function variedText(tensor: Shaped, letters: Letters): string {
  const texts = openOf(tensor).map(({key, sizes}) => `${letters.get(key) ?? 'N'} varied${sizesText(sizes)}`);
  return [...new Set(texts)].join('; ');
}

function sizesText([first, ...others]: readonly number[]): string {
  if (first === undefined) return '';
  return others.length === 0 ? `: ${first} and others` : `: first ${first}, then ${others.join(', ')}`;
}
