/** Repeated calls, of which one node is drawn that shows one of them. */

import type {Layout, ModuleGraph, PlacedEdge, PlacedNode} from '../api/types';
import {wholeNumber} from '../numberText';
import {nodeKey} from './keys';
import type {NodeKey} from './keys';
import type {Mark} from './nonfinite';

/** From so many calls on they are folded: `LEAST_CALLS` in `layout/folding.py`. */
export const LEAST_CALLS = 4;

/** Which call each loop shows, by the key of the loop and from 0. */
export type ChosenCalls = Readonly<Record<NodeKey, number>>;

/** Repeated calls that take turns. */
export interface Loop {
  /** The key of its first call, whichever is shown. */
  key: NodeKey;
  /** The nodes that are drawn, as indices in `Layout.nodes`. */
  nodes: readonly number[];
  /** How many calls the node with most of them has. */
  count: number;
  /** Which of them is shown, from 0. */
  chosen: number;
  /** They are calls of different modules, which are equal, and take no turns. */
  isStack: boolean;
}

export function loopsOf(graph: ModuleGraph, {nodes, loops = []}: Layout, chosen: ChosenCalls): Loop[] {
  return loops.flatMap((loop) => {
    const [first, ...more] = loop.flatMap((at) => nodes[at]?.all ?? []);
    if (first === undefined || more.length === 0) return [];
    const key = nodeKey(graph, first);
    const count = Math.max(...loop.map((at) => nodes[at]?.all?.length ?? 1));
    return [{key, nodes: loop, count, chosen: within(chosen[key] ?? 0, count), isStack: isStack(graph, [first, ...more])}];
  });
}

/** Are these nodes equal siblings, and not calls of one module? */
export function isStack({nodes, calls}: ModuleGraph, all: readonly number[]): boolean {
  const [first, second] = all.map((node) => calls[nodes[node]?.call ?? -1]?.module);
  return first !== undefined && second !== undefined && first !== second;
}

/** The layout with each repeated node and edge standing for the call that is chosen. */
export function resolved(graph: ModuleGraph, layout: Layout, chosen: ChosenCalls): Layout {
  const loops = loopsOf(graph, layout, chosen);
  if (loops.length === 0) return layout;
  const shown = new Map<number, number>();
  for (const loop of loops) {
    for (const at of loop.nodes) {
      const all = layout.nodes[at]?.all ?? [];
      const node = all[turnOf(loop, all.length)];
      if (node !== undefined) shown.set(at, node);
    }
  }
  const nodes = layout.nodes.map((placed, at) => ({...placed, node: shown.get(at) ?? placed.node}));
  const onShow = new Set(nodes.map(({node}) => node));
  return {...layout, nodes, edges: layout.edges.map((placed) => resolvedEdge(graph, placed, onShow))};
}

/** Which of its `count` calls a node shows: in loops whose nodes are called equally often, the same turn of each. */
export function turnOf({chosen, count}: Pick<Loop, 'chosen' | 'count'>, calls: number): number {
  return calls === count || count < 2 ? within(chosen, calls) : Math.round((chosen * (calls - 1)) / (count - 1));
}

/** The turn of a loop at which its node `at` shows call number `turn`. */
export function turnFor({count}: Pick<Loop, 'count'>, calls: number, turn: number): number {
  return calls === count || calls < 2 ? turn : Math.round((turn * (count - 1)) / (calls - 1));
}

/** An edge into a call on show, else one out of it. */
function resolvedEdge({edges}: ModuleGraph, placed: PlacedEdge, onShow: ReadonlySet<number>): PlacedEdge {
  const {all} = placed;
  if (all === undefined || all.length === 0) return placed;
  const into = all.filter((at) => onShow.has(edges[at]?.target ?? -1));
  const through = into.find((at) => onShow.has(edges[at]?.source ?? -1));
  const edge = through ?? into.at(-1) ?? all.find((at) => onShow.has(edges[at]?.source ?? -1)) ?? placed.edge;
  return {...placed, edge};
}

/** The nodes that a box stands for. */
export function nodesOf({node, all}: PlacedNode): readonly number[] {
  return all !== undefined && all.length > 0 ? all : [node];
}

export function isFolded({all}: PlacedNode): boolean {
  return all !== undefined && all.length > 0;
}

function within(turn: number, count: number): number {
  return Math.min(Math.max(0, turn), count - 1);
}

/** `413 of 999`; with the number of the call itself where not all calls are recorded. */
export function turnText(call: number, turn: number, count: number, last: number): string {
  const of = `${wholeNumber(turn + 1)} of ${wholeNumber(count)}`;
  return last + 1 === count ? of : `#${wholeNumber(call + 1)}, ${of} recorded`;
}

/** What is marked on a folded node: NaN or infinity in any of its calls. */
export function foldedMark(all: readonly number[], marks: ReadonlyMap<number, Mark>): Mark | null {
  const found = all.flatMap((node) => marks.get(node) ?? []);
  if (found.length === 0) return null;
  const own = found.filter(({isInside}) => !isInside);
  const kinds = [found.some(({hasNan}) => hasNan) && 'NaN', found.some(({hasInfinite}) => hasInfinite) && '∞'].filter(Boolean).join(' ');
  const first = all.findIndex((node) => marks.has(node));
  return {
    hasNan: found.some(({hasNan}) => hasNan),
    hasInfinite: found.some(({hasInfinite}) => hasInfinite),
    isGradientOnly: own.every(({isGradientOnly}) => isGradientOnly),
    isInside: own.length === 0,
    tensors: [`${kinds} in ${wholeNumber(found.length)} of ${wholeNumber(all.length)} calls, the first is #${wholeNumber(first + 1)}`],
    more: 0,
  };
}

/** A stretch of calls in the strip below a folded node: how far it is on the colour scale, or what else is to be seen. */
export type StripCell = number | 'bad' | null;

/** So many cells at most, each of which shows the largest value of its calls; NaN and infinity are never hidden. */
export function stripCells(values: readonly StripCell[], most: number): StripCell[] {
  const cells = Math.min(most, values.length);
  return Array.from({length: cells}, (_, i) => {
    const some = values.slice(Math.floor((i * values.length) / cells), Math.floor(((i + 1) * values.length) / cells));
    if (some.includes('bad')) return 'bad';
    const numbers = some.filter((one) => typeof one === 'number');
    return numbers.length === 0 ? null : Math.max(...numbers);
  });
}
