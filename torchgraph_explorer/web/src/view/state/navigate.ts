/** Ways through the graph: into a call, out of it, to a node anywhere. */

import {batch, computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {ModuleGraph} from '../../api/types';
import {callKey, parseKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import * as store from './choices';

/** The call whose inside holds the node; null is the top, undefined when the graph has no such node. */
function parentOf(graph: ModuleGraph, calls: ReadonlyMap<NodeKey, number>, key: NodeKey): number | null | undefined {
  const parsed = parseKey(key);
  if (!parsed) return undefined;
  const call = calls.get(`${parsed.module}#${parsed.call}`);
  if (call === undefined) return undefined;
  return parsed.kind === 'call' ? (graph.calls[call]?.parent ?? null) : call;
}

/** Opens the inside of a call; null is the top. What was asked for before, and is still to come, is no longer wanted. */
export function openCall(call: number | null): void {
  store.wanted.value = null;
  enter(call);
}

function enter(call: number | null): void {
  const graph = store.graph.value;
  if (!graph || call === store.inside.value) return;
  batch(() => {
    store.insideKey.value = call === null ? '' : callKey(graph, call);
    store.selected.value = null;
  });
}

/** Is the model called just once? The top then holds one node, and is passed over. */
export const isAlone: ReadonlySignal<boolean> = computed(() => {
  const roots = (store.graph.value?.calls ?? []).filter(({parent}) => parent === null);
  return roots.length === 1;
});

export const canLeadOut: ReadonlySignal<boolean> = computed(() => {
  const inside = store.inside.value;
  return inside !== null && !(isAlone.value && store.graph.value?.calls[inside]?.parent === null);
});

/** Leads out of the open call, and selects it. */
export function leadOut(): void {
  const graph = store.graph.value;
  const inside = store.inside.value;
  if (!graph || inside === null || !canLeadOut.value) return;
  batch(() => {
    openCall(graph.calls[inside]?.parent ?? null);
    store.selected.value = callKey(graph, inside);
  });
}

/** Opens the inside that holds the node and selects it; nothing when this graph has no such node. */
export function goTo(key: NodeKey): void {
  const graph = store.graph.value;
  const parent = graph ? parentOf(graph, store.callIndex.value, key) : undefined;
  if (parent === undefined) return;
  batch(() => {
    enter(parent);
    store.selected.value = key;
  });
}

/** Shows the frame `by` frames from the current one; the last one is followed from then on. */
export function stepBy(by: number): void {
  const last = (store.data.value?.steps.length ?? 0) - 1;
  const now = store.currentFrame.value;
  if (now === null) return;
  const next = Math.max(0, now + by);
  store.frame.value = next >= last ? null : next;
}
