/** What the rules say of the other models of the run, such as the discriminator beside a generator: one is on show alone. */

import {computed, effect, signal, untracked} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {chartAnswers} from '../../api/client';
import type {Finding} from '../../api/types';
import {ModelFindings} from '../../model/findings';
import * as choices from '../state/choices';
import {chosenRun} from '../state/runs';
import * as shown from '../state/shown';
import {found} from './found';

/** So many other models are asked about: each takes the rules as long as the one on show. */
const MOST_MODELS = 8;

/** How often they are asked about again while the run grows. */
const AGAIN_MS = 20_000;

export interface Elsewhere {
  model: string;
  /** Errors and warnings, at least one. */
  findings: readonly Finding[];
}

/** Changes when the others are to be asked about; null until the findings of the model on show have come. */
const round = signal<number | null>(null);

const others: ReadonlySignal<readonly string[]> = computed(() => {
  const models = chosenRun.value?.models ?? [];
  return models.filter((model) => model !== choices.model.value).slice(0, MOST_MODELS);
});

const asked = signal<readonly {model: string; findings: ModelFindings}[]>([]);

/** The other models that have any, in the order of the run. */
export const elsewhere: ReadonlySignal<readonly Elsewhere[]> = computed(() =>
  asked.value
    .map(({model, findings}) => ({model, findings: (findings.known.value?.findings ?? []).filter(({severity}) => severity !== 'info')}))
    .filter(({findings}) => findings.length > 0),
);

/** Asks about them as long as the page is open. */
export function startElsewhere(): void {
  const names = computed(() => JSON.stringify([choices.run.value, others.value]));
  effect(() => {
    void names.value;
    return untracked(askAboutOthers);
  });
  const isFound = computed(() => found.value !== null);
  effect(() => {
    const isKnown = isFound.value;
    if (shown.isOver.value || !isKnown) {
      round.value = isKnown ? (round.peek() ?? 0) + 1 : null;
      return undefined;
    }
    round.value = round.peek() ?? 0;
    const timer = setInterval(() => !document.hidden && (round.value = (round.peek() ?? 0) + 1), AGAIN_MS);
    return () => clearInterval(timer);
  });
}

function askAboutOthers(): () => void {
  const run = choices.run.value;
  const all = run === null ? [] : others.value.map((model) => ({model, findings: findingsOf(run, model)}));
  asked.value = all;
  return () => all.forEach(({findings}) => findings.close());
}

function findingsOf(run: string, model: string): ModelFindings {
  return new ModelFindings(round, (version, abort) => chartAnswers.findings({run, model}, version, abort));
}
