/** What the training loop of a model logged: fetched as the run grows, the values of those scalars that are shown. */

import {signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {WantedScalars} from '../api/answers';
import {mayPass, RETRY_MS} from '../api/errors';
import type {ScalarInfo, ScalarNews, ScalarValues, StepNote} from '../api/types';

/** Entries of a scalar at most: about two for each pixel of a wide chart. */
const MOST = 1024;

export interface ScalarData {
  version: string;
  scalars: ScalarInfo[];
  notes: StepNote[];
  /** Steps of a bin. */
  unit: number;
  /** By number of the scalar, as far as they have come. */
  values: ReadonlyMap<number, ScalarValues>;
}

/** Number of the scalar called `name`: without a label if there is one, else with the first label. -1: there is none. */
export function numberOf(data: ScalarData | null | undefined, name: string | null): number {
  const scalars = data?.scalars ?? [];
  const plain = scalars.findIndex((one) => one.name === name && one.label === undefined);
  return plain >= 0 ? plain : scalars.findIndex((one) => one.name === name);
}

type Fetch = (wanted: WantedScalars, abort?: AbortSignal) => Promise<ScalarNews | null>;

export class Scalars {
  readonly #data = signal<ScalarData | null>(null);
  /** How many show each scalar. */
  readonly #shown = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #answers = 0;
  #isClosed = false;

  constructor(private readonly fetchScalars: Fetch) {}

  /** Null before the first answer. */
  get data(): ReadonlySignal<ScalarData | null> {
    return this.#data;
  }

  /** Fetches the values of a scalar from now on, until the function is called that it returns. */
  want(name: string): () => void {
    const count = this.#shown.get(name) ?? 0;
    this.#shown.set(name, count + 1);
    if (count === 0) this.#askSoon();
    return () => {
      const left = (this.#shown.get(name) ?? 1) - 1;
      if (left > 0) this.#shown.set(name, left);
      else this.#shown.delete(name);
    };
  }

  /** Asks once what is new. An answer that another one has overtaken is dropped. */
  async update(abort?: AbortSignal): Promise<void> {
    const before = this.#data.peek();
    const scalars = this.#numbers(before);
    const isHeld = before !== null && scalars.every((one) => before.values.has(one));
    const known = isHeld ? {known: {version: before.version, unit: before.unit, from: lastStep(before, scalars)}} : {};
    const answers = this.#answers;
    const news = await this.fetchScalars({scalars, most: MOST, ...known}, abort);
    if (news === null || answers !== this.#answers || abort?.aborted) return;
    this.#answers++;
    this.#data.value = joined(before, news);
    if (this.#numbers(this.#data.value).some((one) => !this.#data.value!.values.has(one))) this.#askSoon();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#answers++;
  }

  #numbers(data: ScalarData | null): number[] {
    return (data?.scalars ?? []).flatMap(({name}, number) => (this.#shown.has(name) ? [number] : []));
  }

  /** Before the next poll, which may come late; all that become visible together are asked for at once. The poll says what is wrong with the server. */
  #askSoon(ms = 0): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#data.peek() === null) return; // the poll asks first
    this.#timer = setTimeout(() => void this.update().catch((cause: unknown) => mayPass(cause) && this.#askSoon(RETRY_MS)), ms);
  }
}

/** The last step of any of `scalars`. What comes later in the same epoch is not before it. */
function lastStep({values}: ScalarData, scalars: readonly number[]): number {
  return Math.max(0, ...scalars.map((one) => values.get(one)?.last.at(-1) ?? 0));
}

/** What is known after an answer. */
function joined(before: ScalarData | null, {version, scalars, notes, unit, from, values}: ScalarNews): ScalarData {
  const isMore = before !== null && from > 0;
  const begin = Math.floor(from / unit) * unit;
  const all = [...values].map(([one, news]) => {
    const known = isMore ? before.values.get(one) : undefined;
    return [one, known === undefined ? news : appended(known, news, begin)] as const;
  });
  return {version, scalars, notes, unit, values: new Map(all)};
}

function appended(known: ScalarValues, news: ScalarValues, begin: number): ScalarValues {
  let kept = known.step.length;
  while (kept > 0 && known.step[kept - 1]! >= begin) kept--;
  const floats = (name: 'step' | 'time' | 'value' | 'last' | 'low' | 'high'): Float64Array =>
    Float64Array.of(...known[name].subarray(0, kept), ...news[name]);
  const whole = (name: 'count' | 'bad'): Uint32Array => Uint32Array.of(...known[name].subarray(0, kept), ...news[name]);
  return {
    ...{step: floats('step'), time: floats('time'), value: floats('value'), last: floats('last')},
    ...{low: floats('low'), high: floats('high'), count: whole('count'), bad: whole('bad')},
  };
}
