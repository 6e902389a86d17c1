/** What the rules say of a model: asked for as the run grows. */

import {effect, signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {messageOf} from '../api/errors';
import {latest} from '../api/latest';
import type {Finding, Findings, SameFindings} from '../api/types';

const AGAIN_MS = 1000;

type FetchFindings = (version: string, signal: AbortSignal) => Promise<Findings | SameFindings>;

/** Asks whenever something is new, until closed. */
export class ModelFindings {
  readonly #known = signal<Findings | null>(null);
  readonly #problem = signal<string | null>(null);
  readonly #request = latest();
  readonly #stop: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isUnderWay = false;

  constructor(
    /** Changes when something was recorded; null before the first answer about that. */
    private readonly news: ReadonlySignal<unknown>,
    private readonly fetchFindings: FetchFindings,
    before: Findings | null = null,
  ) {
    this.#known.value = before;
    this.#stop = effect(() => {
      if (this.news.value !== null) this.#ask();
    });
  }

  /** What is known so far; null before the first answer. */
  get known(): ReadonlySignal<Findings | null> {
    return this.#known;
  }

  /** Why the last question had no answer, as a sentence. */
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }

  close(): void {
    this.#stop();
    this.#request.abort();
    clearTimeout(this.#timer);
  }

  #ask(): void {
    clearTimeout(this.#timer);
    if (this.#isUnderWay) return this.#askAgain();
    this.#isUnderWay = true;
    this.#request.start(
      (abort) => this.fetchFindings(this.#known.peek()?.version ?? '', abort),
      (answer) => this.#take(answer),
      (cause) => {
        this.#problem.value = messageOf(cause);
        this.#end(false);
      },
    );
  }

  #take(answer: Findings | SameFindings): void {
    const before = this.#known.peek();
    this.#problem.value = null;
    if (!isSame(answer)) this.#known.value = {...answer, findings: kept(before?.findings, answer.findings)};
    else if (before !== null && before.is_complete !== answer.is_complete) this.#known.value = {...before, is_complete: answer.is_complete};
    this.#end(answer.is_complete);
  }

  #end(isComplete: boolean): void {
    this.#isUnderWay = false;
    if (!isComplete) this.#askAgain();
  }

  #askAgain(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), AGAIN_MS);
  }
}

function isSame(answer: Findings | SameFindings): answer is SameFindings {
  return 'is_same' in answer && answer.is_same;
}

/** The list of before where nothing in it has changed, so that nothing is drawn again. */
function kept(before: Finding[] | undefined, now: Finding[]): Finding[] {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(now) ? before : now;
}
