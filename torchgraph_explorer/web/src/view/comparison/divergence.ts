/** Where the run on show and the one that the graph is compared with part: asked for once, and again while they grow. */

import {computed, effect, signal, untracked} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {answers, precedence} from '../../api/client';
import {isAbort, mayPass, messageOf, RETRY_MS} from '../../api/errors';
import type {ComparisonAnswer, ComparedSeries} from '../../api/types';
import {callKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {seek} from '../panels/sought';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {against, renames} from './state';

interface Answered {
  /** Which runs it is of. */
  name: string;
  answer: ComparisonAnswer | null;
  problem: string | null;
}

/** A growing run is compared again after so long at the earliest: the server reads all of both. */
const AGAIN_MS = 15_000;

const answered = signal<Answered | null>(null);

const pair = computed(() => {
  const [main, other] = [shown.model.value, against.value];
  if (main === null || other === null || shown.frame.value === null || other.model.frame.value === null) return null;
  return {main: main.name, other: other.model.name, renames: renames.value.problem === null ? choices.comparison.value.renames : ''};
});

const pairName = computed(() => JSON.stringify(pair.value));

/** How many frames both have, and of which epochs: more of them are news, and others are too. */
const frames = computed(() => JSON.stringify([shown.data.value, against.value?.model.data.value].map((data) => [data?.epoch, data?.steps.length])));

/** What is known of the two runs on show; null while nothing is. */
export const comparison: ReadonlySignal<Answered | null> = computed(() => (answered.value?.name === pairName.value ? answered.value : null));

/** Follows the choice of runs, and the runs while they grow. */
export function startDivergence(): void {
  effect(() => {
    if (pairName.value === 'null') return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let known = '';
    let next = 0;
    const look = (): void => {
      clearTimeout(timer);
      if (known !== frames.peek()) timer = setTimeout(() => void askAgain(), Math.max(0, next - performance.now()));
    };
    const askAgain = async (): Promise<void> => {
      known = frames.peek();
      next = Infinity; // while one is under way
      const isToRepeat = await ask(abort.signal);
      next = performance.now() + (isToRepeat ? RETRY_MS : AGAIN_MS);
      if (isToRepeat) known = '';
      if (!abort.signal.aborted) look();
    };
    const stop = untracked(() =>
      effect(() => {
        void frames.value;
        if (next !== Infinity) look();
      }),
    );
    return () => {
      stop();
      clearTimeout(timer);
      abort.abort();
    };
  });
}

/** True after a failure that may pass. */
async function ask(abort: AbortSignal): Promise<boolean> {
  const [wanted, name] = [pair.peek(), pairName.peek()];
  if (wanted === null) return false;
  try {
    const answer = await precedence.later(() => answers.compare(wanted.main, wanted.other, wanted.renames, abort));
    if (!abort.aborted) answered.value = {name, answer, problem: null};
    return false;
  } catch (cause) {
    if (isAbort(cause) || abort.aborted) return false;
    const isToRepeat = mayPass(cause);
    answered.value = {name, answer: isToRepeat ? (comparison.peek()?.answer ?? null) : null, problem: messageOf(cause)};
    return isToRepeat;
  }
}

/** Shows the node of a series at a step, and its panel. */
export function goToSeries(series: Pick<ComparedSeries, 'module' | 'call' | 'role' | 'path'>, step: number | null): void {
  if (step !== null) choices.step.value = step;
  const key = keyOfModule(series.module, series.call);
  if (key === null) return;
  seek(series);
  choices.pinInPassing(key);
  choices.find(key);
}

/** Of a parameter, the first call of its module. */
function keyOfModule(module: string, call: number | null): NodeKey | null {
  const graph = shown.graph.peek();
  const key = `${module}#${call ?? 0}`;
  if (graph === null || module === '') return graph === null ? null : key;
  return graph.calls.some((_, i) => callKey(graph, i) === key) ? key : null;
}
