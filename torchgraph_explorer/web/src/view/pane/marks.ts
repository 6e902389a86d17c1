/** What is marked in the graph on show at the step on show, because it holds NaN or infinity. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {SeriesName} from '../../api/types';
import * as shown from '../state/shown';
import {badTensors, marksOf, NO_MARKS} from '../../graph/nonfinite';
import type {BadTensor, Marks} from '../../graph/nonfinite';

const badNow: ReadonlySignal<readonly BadTensor[]> = computed(() => {
  const [statistics, data] = [shown.statistics.value, shown.data.value];
  return statistics?.epoch === data?.epoch ? badTensors(statistics, data?.series ?? []) : [];
});

export const marks: ReadonlySignal<Marks> = computed(() => {
  const graph = shown.graph.value;
  return graph ? marksOf(graph, badNow.value, shown.callIndex.value) : NO_MARKS;
});

/** The keys of nodes where it began, the nearest first, if it did so at the step on show; none else. */
export const originKeys: ReadonlySignal<readonly string[]> = computed(() => {
  const first = shown.nonfinite.value?.first;
  return first && first.step === shown.statistics.value?.step ? keysOf(first.tensor) : [];
});

/** What is written there: `first ∞`. */
export const originText: ReadonlySignal<string> = computed(() => {
  const tensor = shown.nonfinite.value?.first?.tensor;
  if (!tensor) return '';
  return `first ${tensor.nan > 0 ? 'NaN' : '∞'}${tensor.kind === 'value' ? '' : ' gradient'}`;
});

/** The nodes that stand for a tensor, in the order in which they are preferred: the first one that the graph has is it. */
export function keysOf(tensor: SeriesName | null): string[] {
  if (tensor === null) return [];
  const {module, role, path} = tensor;
  const call = `${module}#${tensor.call ?? 0}`;
  if (role === 'attached') return [`${call}@${path}`, call];
  const isOfModel = module === '' && role !== 'param';
  return isOfModel ? [`${call}/${path}`, call] : [call];
}
