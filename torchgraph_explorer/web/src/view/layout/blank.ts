/** Whether nothing can be shown but the sentence that says why: then no empty columns stand around it. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {ModelData} from '../../model/data';
import {isCompared} from '../../comparison/choice';
import {found} from '../findings/found';
import {hasScalars} from '../scalars/shownScalars';
import * as choices from '../state/choices';
import * as server from '../state/runs';
import * as shown from '../state/shown';

export const isBlank: ReadonlySignal<boolean> = computed(() => {
  if (server.runs.value === null || isCompared(choices.comparison.value)) return false;
  const data = shown.data.value;
  if (data === null) return (server.chosenRun.value?.models ?? []).length === 0;
  return isEmpty(data) && !hasScalars.value && (found.value?.findings ?? []).length === 0;
});

function isEmpty({steps, graphs, series}: ModelData): boolean {
  return steps.length + graphs.length + series.length === 0;
}
