/** The way to where NaN or infinity came up first: its step, the inside that holds it, and its panel. */

import {batch, effect} from '@preact/signals';
import type {FirstNonFinite} from '../../api/types';
import {nodeIndex} from '../pane/scene';
import {keysOf} from '../pane/marks';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {pinNode} from '../pinning';

let stop: () => void = () => undefined;

/** Shows the step at once, and the node as soon as the graph of that step is there. */
export function goToTrouble({step, tensor}: FirstNonFinite): void {
  stop();
  const asked = shown.model.value;
  const epoch = shown.data.value?.epoch;
  batch(() => {
    choices.graphChoice.value = null;
    choices.step.value = step;
  });
  let isDone = false;
  const dispose = effect(() => {
    const isOther = shown.model.value !== asked || shown.data.value?.epoch !== epoch;
    const isThere = shown.graph.value !== null && shown.graph.value.graph === shown.graphInfo.value?.graph;
    if (isDone || !(isOther || isThere)) return;
    isDone = true;
    queueMicrotask(() => stop());
    if (isOther) return;
    const key = keysOf(tensor).find((one) => nodeIndex.value.has(one));
    if (key === undefined) return;
    queueMicrotask(() => batch(() => (pinNode(key), choices.find(key))));
  });
  stop = dispose;
}
