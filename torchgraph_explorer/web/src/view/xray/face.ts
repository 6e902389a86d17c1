/** What the x-ray's list of related series is about. */

import {batch, effect, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import type {Finding} from '../../api/types';
import type {AskedSteps, RelatedTo} from '../../api/xray';
import {findingKey, placeText, titleOf} from '../../findings/names';
import {reveal} from '../layout/sides';
import * as choices from '../state/choices';
import * as shown from '../state/shown';

/** The steps of a finding, or of a limit that is passed, and what they are called. */
export interface Lasting {
  name: string;
  steps: AskedSteps;
  /** The key of the finding, if it is one. */
  finding?: string;
}

export type Target = RelatedTo | Lasting;

/** Null for what changed at the step. */
export const target: Signal<Target | null> = signal(null);

/** What the list is about is forgotten with the model that it is of. */
export function startForgetting(): void {
  effect(() => {
    void [choices.run.value, choices.model.value];
    target.value = null;
  });
}

export function isLasting(one: Target): one is Lasting {
  return 'steps' in one;
}

/** Shows what is unusual while a finding lasts, and what was before it. */
export function showRelated(finding: Finding): void {
  const {kind, step, last_step} = finding;
  batch(() => {
    const where = placeText(finding, shown.data.value?.session?.class_name ?? '');
    target.value = {name: `${titleOf(kind)}, ${where}`, steps: [step, last_step], finding: findingKey(finding)};
    choices.xrayFace.value = 'changes';
    choices.xray.value = true;
    choices.view.value = 'graph';
    reveal('panels');
  });
}
