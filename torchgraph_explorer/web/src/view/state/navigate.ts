/** Ways through the graph: into a call, out of it, to a node anywhere. */

import {batch, computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {ModuleGraph} from '../../api/types';
import {callKey, parseKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {stepToChoose} from '../../steps';
import * as choices from './choices';
import * as shown from './shown';

/** The call whose inside holds the node; null is the top, undefined when the graph has no such node. */
function parentOf(graph: ModuleGraph, calls: ReadonlyMap<NodeKey, number>, key: NodeKey): number | null | undefined {
  const parsed = parseKey(key);
  if (!parsed) return undefined;
  const call = calls.get(`${parsed.module}#${parsed.call}`);
  if (call === undefined) return undefined;
  if (parsed.kind !== 'call' || isPassedOver(graph, call)) return call;
  return graph.calls[call]?.parent ?? null;
}

/** The model's only call, which has an inside: that shows more of it than the top, where it stands alone. */
function isPassedOver({calls}: ModuleGraph, call: number): boolean {
  return calls[call]?.parent === null && isAlone.value && calls.some(({parent}) => parent === call);
}

/** Its place is the whole of what is open: it is no node there. */
export function isWhole(key: NodeKey): boolean {
  const [graph, call] = [shown.graph.value, shown.callIndex.value.get(key)];
  return graph !== null && call !== undefined && isPassedOver(graph, call);
}

/** Opens the inside of a call; null is the top. What was asked for before, and is still to come, is no longer wanted. */
export function openCall(call: number | null): void {
  choices.wanted.value = null;
  enter(call);
}

function enter(call: number | null): void {
  const graph = shown.graph.value;
  if (!graph || call === shown.inside.value) return;
  batch(() => {
    choices.insideKey.value = call === null ? '' : callKey(graph, call);
    choices.selected.value = null;
  });
}

/** Is the model called just once? The top then holds one node, and is passed over. */
export const isAlone: ReadonlySignal<boolean> = computed(() => {
  const roots = (shown.graph.value?.calls ?? []).filter(({parent}) => parent === null);
  return roots.length === 1;
});

export const canLeadOut: ReadonlySignal<boolean> = computed(() => {
  const inside = shown.inside.value;
  return inside !== null && !(isAlone.value && shown.graph.value?.calls[inside]?.parent === null);
});

/** Leads out of the open call, and selects it. */
export function leadOut(): void {
  const graph = shown.graph.value;
  const inside = shown.inside.value;
  if (!graph || inside === null || !canLeadOut.value) return;
  batch(() => {
    openCall(graph.calls[inside]?.parent ?? null);
    choices.selected.value = callKey(graph, inside);
  });
}

/** Opens the inside that holds the node and selects it; nothing when this graph has no such node. */
export function goTo(key: NodeKey): void {
  const graph = shown.graph.value;
  const parent = graph ? parentOf(graph, shown.callIndex.value, key) : undefined;
  if (parent === undefined) return;
  batch(() => {
    enter(parent);
    choices.selected.value = key;
  });
}

/** Shows the frame `by` frames from the current one; the last one is followed from then on. */
export function stepBy(by: number): void {
  const {data, frame} = shown;
  if (frame.value !== null) choices.step.value = stepToChoose(data.value?.steps ?? [], frame.value + by);
}
