/** At which steps a model holds NaN or infinity, and where that began: asked for as the run grows. */

import {effect, signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {Known} from '../api/answers';
import {latest} from '../api/latest';
import type {NonFinite} from '../api/types';
import type {ModelData} from './data';

const AGAIN_MS = 1000;

type FetchNonFinite = (known: Pick<Known, 'epoch' | 'frames'>, signal: AbortSignal) => Promise<NonFinite>;

/** Follows the frames of a model until closed. */
export class NonFiniteSteps {
  readonly #known = signal<NonFinite | null>(null);
  readonly #request = latest();
  readonly #stop: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isUnderWay = false;
  #epoch: number | null = null;

  constructor(
    private readonly data: ReadonlySignal<ModelData | null>,
    private readonly fetchNonFinite: FetchNonFinite,
  ) {
    this.#stop = effect(() => this.#follow());
  }

  /** What is known so far; null before the first answer. */
  get known(): ReadonlySignal<NonFinite | null> {
    return this.#known;
  }

  close(): void {
    this.#stop();
    this.#forget();
  }

  #follow(): void {
    const data = this.data.value;
    const epoch = data?.epoch ?? null;
    if (epoch !== this.#epoch) this.#forget();
    this.#epoch = epoch;
    if (data !== null && data.steps.length > (this.#known.peek()?.frames ?? 0)) this.#ask();
  }

  #forget(): void {
    this.#request.abort();
    clearTimeout(this.#timer);
    this.#isUnderWay = false;
    this.#known.value = null;
  }

  #ask(): void {
    clearTimeout(this.#timer);
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    const before = this.#known.peek();
    this.#request.start(
      (abort) => this.fetchNonFinite({epoch: before?.epoch ?? -1, frames: before?.frames ?? 0}, abort),
      (answer) => this.#take(before, answer),
      () => this.#askAgain(AGAIN_MS), // the poll says what is wrong with the server
    );
  }

  #take(before: NonFinite | null, answer: NonFinite): void {
    this.#isUnderWay = false;
    this.#known.value = extended(before, answer);
    const frames = this.data.peek()?.steps.length ?? 0;
    if (!answer.is_complete) this.#askAgain(0);
    else if (!answer.are_others_complete || answer.frames < frames) this.#askAgain(AGAIN_MS);
  }

  #askAgain(ms: number): void {
    this.#isUnderWay = false;
    this.#timer = setTimeout(() => this.#ask(), ms);
  }
}

/** `before` with what the answer brings, which tells everything from its frame `from` on. */
export function extended(before: NonFinite | null, answer: NonFinite): NonFinite {
  if (before === null || answer.from === 0 || before.epoch !== answer.epoch) return answer;
  return {...answer, bad: answer.bad.length === 0 ? before.bad : [...before.bad, ...answer.bad]};
}
