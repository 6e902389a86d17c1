/** The way to a step and a node: the step at once, and the node as soon as the graph of that step is there. */

import {batch, effect} from '@preact/signals';
import type {NodeKey} from '../graph/keys';
import {nodeIndex} from './pane/scene';
import * as choices from './state/choices';
import * as shown from './state/shown';
import {lookAtNode} from './pinning';

let stop: () => void = () => undefined;

/**
 * Shows the step, and the first of the nodes that its graph has, with its panel.
 *
 * @param orElse Is called where the graph has none of them.
 */
export function goToPlace(step: number, keys: readonly NodeKey[], orElse: () => void = () => undefined): void {
  stop();
  batch(() => {
    choices.view.value = 'graph';
    choices.graphChoice.value = null;
    choices.step.value = step;
    choices.isOnTheWay.value = true;
  });
  const asked = place();
  let isDone = false;
  const dispose = effect(() => {
    const isOther = place() !== asked;
    const isThere = shown.graph.value !== null && shown.graph.value.graph === shown.graphInfo.value?.graph;
    if (isDone || !(isOther || isThere)) return;
    isDone = true;
    queueMicrotask(() => stop());
    const key = keys.find((one) => nodeIndex.value.has(one));
    queueMicrotask(() => batch(() => (isOther || arrive(key, orElse), (choices.isOnTheWay.value = false))));
  });
  stop = dispose;
}

/** Shows the module's first call at the step, or at that on show. One that is not called there is selected in the tree alone. */
export function goToModule(name: string, step: number | null = shown.step.peek()): void {
  const key = `${name}#0`;
  if (step !== null) goToPlace(step, [key], () => batch(() => (lookAtNode(key), (choices.selected.value = key))));
}

function arrive(key: NodeKey | undefined, orElse: () => void): void {
  if (key === undefined) return orElse();
  lookAtNode(key);
  choices.find(key);
}

/** Tells one record from another, and where in it one looks: who has gone elsewhere meanwhile is not led away from there. */
function place(): string {
  const {run, model, view, graphChoice, step, selected} = choices;
  return JSON.stringify([shown.data.value?.epoch, ...[run, model, view, graphChoice, step, selected].map((one) => one.value)]);
}
