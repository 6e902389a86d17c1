/** The way to where NaN or infinity came up first: its step, the inside that holds it, and its panel. */

import {batch, effect} from '@preact/signals';
import type {FirstNonFinite} from '../../api/types';
import {nodeIndex} from '../pane/scene';
import {keysOf} from '../pane/marks';
import {frameAtStep} from '../../model/updates';
import * as store from '../state/choices';
import {pinNode} from '../pinning';

let stop: () => void = () => undefined;

/** Shows the step at once, and the node as soon as the graph of that step is there. */
export function goToTrouble({step, tensor}: FirstNonFinite): void {
  stop();
  const {data, model} = store;
  const steps = data.value?.steps ?? [];
  const epoch = data.value?.epoch;
  batch(() => {
    store.graphChoice.value = null;
    store.frame.value = frameAtStep(steps, step);
  });
  const asked = model.value;
  let isDone = false;
  const dispose = effect(() => {
    const isOther = data.value?.epoch !== epoch || model.value !== asked;
    const isThere = store.graph.value !== null && store.graph.value.graph === store.graphInfo.value?.graph;
    if (isDone || !(isOther || isThere)) return;
    isDone = true;
    queueMicrotask(() => stop());
    if (isOther) return;
    const key = keysOf(tensor).find((one) => nodeIndex.value.has(one));
    if (key === undefined) return;
    queueMicrotask(() => batch(() => (pinNode(key), store.find(key))));
  });
  stop = dispose;
}
