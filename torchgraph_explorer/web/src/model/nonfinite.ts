/** At which steps the model on show holds NaN or infinity, and where that began: asked for as the run grows. */

import {effect, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import {fetchNonFinite} from '../api/client';
import type {Model} from '../api/client';
import {latest} from '../api/latest';
import type {NonFinite} from '../api/types';
import {chosenModel} from '../view/state/live';
import * as store from '../view/state/choices';

/** What is known so far of the model on show; null before the first answer. */
export const nonfinite: Signal<NonFinite | null> = signal(null);

const AGAIN_MS = 1000;

const request = latest();
let timer: ReturnType<typeof setTimeout> | undefined;
let isUnderWay = false;
/** The model and epoch that `nonfinite` is of. */
let identity = '';

/** Follows the frames of the model on show, for good. */
export function startNonFinite(): void {
  effect(() => {
    const [model, data] = [chosenModel(), store.data.value];
    const now = model === null || data === null ? '' : JSON.stringify([model, data.epoch]);
    if (now !== identity) forget();
    identity = now;
    if (model !== null && data !== null && data.steps.length > (nonfinite.peek()?.frames ?? 0)) ask(model);
  });
}

function forget(): void {
  request.abort();
  clearTimeout(timer);
  isUnderWay = false;
  nonfinite.value = null;
}

function ask(model: Model): void {
  clearTimeout(timer);
  if (isUnderWay) return;
  isUnderWay = true;
  const held = nonfinite.peek();
  request.start(
    (abort) => fetchNonFinite(model, {epoch: held?.epoch ?? -1, frames: held?.frames ?? 0}, abort),
    (answer) => {
      isUnderWay = false;
      nonfinite.value = extended(held, answer);
      if (!answer.is_complete) timer = setTimeout(() => ask(model), 0);
      else if (!answer.are_others_complete || answer.frames < frames()) timer = setTimeout(() => ask(model), AGAIN_MS);
    },
    () => {
      isUnderWay = false;
      timer = setTimeout(() => ask(model), AGAIN_MS); // the poll says what is wrong with the server
    },
  );
}

function frames(): number {
  return store.data.peek()?.steps.length ?? 0;
}

/** `held` with what the answer brings, which tells everything from its frame `from` on. */
export function extended(held: NonFinite | null, answer: NonFinite): NonFinite {
  if (held === null || answer.from === 0 || held.epoch !== answer.epoch) return answer;
  return {...answer, bad: answer.bad.length === 0 ? held.bad : [...held.bad, ...answer.bad]};
}
