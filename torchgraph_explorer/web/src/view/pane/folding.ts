/** Which call a loop shows: chosen by its slider, or because one of its calls was asked for. */

import {batch, computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {page} from '../../api/client';
import type {Mark} from '../../graph/nonfinite';
import type {PlacedNode} from '../../api/types';
import {foldedMark, isFolded, LEAST_CALLS, nodesOf, stripCells, turnFor} from '../../graph/folds';
import type {Loop, StripCell} from '../../graph/folds';
import {nodeKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import type {FindingMark} from '../../findings/places';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {findingMarksShown} from '../findings/found';
import {marks} from './marks';
import {loops, nodeIndex, nodeStates, scene, valueScale} from './scene';

/** Shows another call of a loop. What is selected of it stays so. */
export function showTurn({key, count, nodes, chosen}: Loop, turn: number): void {
  if (turn === chosen) return;
  const selected = loopNodeOf(choices.selected.peek());
  batch(() => {
    choices.chosenCalls.value = {...choices.chosenCalls.peek(), [key]: Math.min(Math.max(0, turn), count - 1)};
    const now = scene.peek();
    const placed = selected !== null && nodes.includes(selected.at) ? now?.layout.nodes[selected.at] : undefined;
    if (now && placed) choices.selected.value = nodeKey(now.graph, placed.node);
  });
}

/** Has the loop that holds a node show it; nothing where no loop does. */
export function showCallOf(key: NodeKey): void {
  const [found, now] = [loopNodeOf(key), scene.peek()];
  if (found === null || now === null) return;
  const {loop, turn, calls, at} = found;
  if (now.layout.nodes[at]?.node !== nodeIndex.peek().get(key)) showTurn(loop, turnFor(loop, calls, turn));
}

/** The drawn node that stands for a node that is repeated: its place in the layout, and which call that is. */
function loopNodeOf(key: NodeKey | null): {loop: Loop; at: number; turn: number; calls: number} | null {
  const [node, now] = [key === null ? undefined : nodeIndex.peek().get(key), scene.peek()];
  if (node === undefined || now === null) return null;
  for (const loop of loops.peek()) {
    for (const at of loop.nodes) {
      const all = now.layout.nodes[at]?.all ?? [];
      const turn = all.indexOf(node);
      if (turn >= 0) return {loop, at, turn, calls: all.length};
    }
  }
  return null;
}

/** Does a box stand for the node with that key? */
export function standsFor(placed: PlacedNode, key: NodeKey): boolean {
  const node = nodeIndex.value.get(key);
  return node !== undefined && (placed.node === node || (placed.all?.includes(node) ?? false));
}

export function markOfBox(placed: PlacedNode): Mark | null {
  const found = marks.value.nodes;
  if (!isFolded(placed)) return found.get(placed.node) ?? null;
  return found.size === 0 ? null : foldedMark(nodesOf(placed), found);
}

/** How often what a box stands for was called; of the model itself also in passes that are not recorded. */
export function timesOf(placed: PlacedNode): number {
  const [count, frame] = [nodesOf(placed).length, shown.frame.value];
  const [passes = 0, recorded = 0] = scene.value?.inside === null && frame !== null ? (shown.data.value?.passes[frame] ?? []) : [];
  return recorded === count ? Math.max(count, passes) : count;
}

/** The findings of all calls that a box stands for, each once. */
export function findingsOfBox(placed: PlacedNode, key: NodeKey): FindingMark | null {
  const found = findingMarksShown.value.calls;
  const graph = scene.value?.graph;
  if (!isFolded(placed) || found.size === 0 || !graph) return found.get(key) ?? null;
  const some = nodesOf(placed).flatMap((node) => found.get(nodeKey(graph, node)) ?? []);
  if (some.length === 0) return null;
  const own = new Set(some.flatMap((one) => one.own));
  return {own: [...own], inside: [...new Set(some.flatMap((one) => one.inside))].filter((one) => !own.has(one))};
}

/** The equal siblings of the drawing that are not drawn as one, and the keys of the stacks that are. */
export const stacks: ReadonlySignal<{loose: NodeKey[]; drawn: NodeKey[]}> = computed(() => {
  const now = scene.value;
  if (now === null) return {loose: [], drawn: []};
  const drawn = loops.value.flatMap(({key, isStack}) => (isStack ? [key] : []));
  const all = (now.layout.stacks ?? []).flatMap(([first]) => (first === undefined ? [] : [nodeKey(now.graph, first)]));
  return {loose: all.filter((key) => !drawn.includes(key)), drawn};
});

/** Draws all equal siblings of the drawing as one node each; one by one if they are already. */
export function toggleStacks(): void {
  const {loose, drawn} = stacks.peek();
  if (loose.length === 0) return drawn.forEach(openStack);
  batch(() => {
    showSelectedOf(scene.peek()?.layout.stacks ?? []);
    choices.stacked.value = [...new Set([...choices.stacked.peek(), ...loose])];
  });
}

/** A stack that holds the selected node shows it. */
function showSelectedOf(all: readonly (readonly number[])[]): void {
  const [graph, node] = [scene.peek()?.graph, nodeIndex.peek().get(choices.selected.peek() ?? '')];
  const [first, turn] = all.flatMap((stack) => (node !== undefined && stack.includes(node) ? [stack[0]!, stack.indexOf(node)] : []));
  if (graph && first !== undefined && turn !== undefined) choices.chosenCalls.value = {...choices.chosenCalls.peek(), [nodeKey(graph, first)]: turn};
}

/** Draws the siblings of a stack one by one. */
export function openStack(key: NodeKey): void {
  const isOnPage = page !== null; // there, all stacks of an inside are drawn, or none of them
  const opened = isOnPage ? stacks.peek().drawn : [key];
  choices.stacked.value = choices.stacked.peek().filter((one) => !opened.includes(one));
}

const MOST_CELLS = 60;

/** What the strip of each folded node shows, by its place in the layout; empty cells while nodes are coloured by class. */
export const strips: ReadonlySignal<ReadonlyMap<number, StripCell[]>> = computed(() => {
  const [scale, states] = [valueScale.value, nodeStates.value];
  const found = new Map<number, StripCell[]>();
  scene.value?.layout.nodes.forEach((placed, at) => {
    if (!isFolded(placed)) return;
    const values = nodesOf(placed).map((node): StripCell => {
      const state = states.get(node);
      if (state?.kind === 'nonfinite') return 'bad';
      const value = state?.kind === 'value' ? state.value : state?.kind === 'zero' ? 0 : null;
      return value === null || scale === null ? null : scale.at(value);
    });
    found.set(at, stripCells(values, MOST_CELLS));
  });
  return found;
});

/** Are calls drawn one by one that would be folded? */
export const couldFold: ReadonlySignal<boolean> = computed(() => {
  const now = scene.value;
  if (!choices.areCallsSingle.value || now === null) return false;
  const counts = new Map<number, number>();
  return now.layout.nodes.some(({node}) => {
    const call = now.graph.nodes[node]?.call;
    const module = call === null || call === undefined ? undefined : now.graph.calls[call]?.module;
    if (module === undefined) return false;
    counts.set(module, (counts.get(module) ?? 0) + 1);
    return counts.get(module) === LEAST_CALLS;
  });
});
