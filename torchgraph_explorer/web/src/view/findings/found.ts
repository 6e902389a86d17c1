/** What the rules say of the model on show, and which of it is chosen. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {Band, Finding, Findings, SeriesName} from '../../api/types';
import {bandIn} from '../../findings/bands';
import {findingKey} from '../../findings/names';
import {findingMarks, NO_FINDING_MARKS, tensorOf} from '../../findings/places';
import type {FindingMarks} from '../../findings/places';
import {rootsOf} from '../../findings/roots';
import type {Root} from '../../findings/roots';
import type {NodeKey} from '../../graph/keys';
import {keysOf} from '../pane/marks';
import * as choices from '../state/choices';
import * as shown from '../state/shown';

/** Null before the first answer. */
export const found: ReadonlySignal<Findings | null> = computed(() => shown.model.value?.findings.value ?? null);

const all: ReadonlySignal<readonly Finding[]> = computed(() => found.value?.findings ?? []);

export const roots: ReadonlySignal<readonly Root[]> = computed(() => rootsOf(all.value));

/** The chosen finding, if the model on show has it. */
export const chosen: ReadonlySignal<Finding | null> = computed(() => {
  const key = choices.finding.value;
  return key === null ? null : (all.value.find((one) => findingKey(one) === key) ?? null);
});

/** What of the graph on show and of its tree is marked. */
export const findingMarksShown: ReadonlySignal<FindingMarks> = computed(() =>
  shown.graph.value ? findingMarks(shown.graph.value, all.value) : NO_FINDING_MARKS,
);

/** The nodes that stand for a finding's place, in the order in which they are preferred; none for the whole run. */
export function keysOfFinding(finding: Finding): NodeKey[] {
  const tensor = tensorOf(finding, shown.data.peek()?.series ?? []);
  if (tensor !== null) return keysOf(tensor);
  return finding.module === null ? [] : [`${finding.module}#${finding.call ?? 0}`];
}

/** The pin in whose panel the chosen finding is told; null where it is told above all panels. */
export const panelOfChosen: ReadonlySignal<NodeKey | null> = computed(() => {
  void shown.data.value;
  const keys = chosen.value === null ? [] : keysOfFinding(chosen.value);
  return keys.find((key) => choices.isPinned(key)) ?? null;
});

/** The band of the chosen finding, if it is one of that series. */
export function bandOf(series: SeriesName): Band | null {
  return bandIn(chosen.value, series);
}
