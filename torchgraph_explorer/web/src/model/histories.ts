/** The histories of the series on show: fetched together, kept up to date, each frame asked for once. */

import {batch, effect, signal, type ReadonlySignal, type Signal} from '@preact/signals';

import type {ModelName, WantedHistory} from '../api/answers';
import {isAbort, messageOf, RETRY_MS} from '../api/errors';
import type {History, SeriesHistory} from '../api/types';
import {GrowingHistory} from './growth';

/** What there is to fetch: histories of another model or epoch have nothing to do with these. */
export interface Source {
  model: ModelName;
  epoch: number;
  /** How many frames the model has. */
  frames: number;
  /** How many entries of a history can be shown; of longer ones the server merges neighbours. */
  most: number;
}

export type FetchHistory = (model: ModelName, wanted: Wanted, signal: AbortSignal) => Promise<History>;

/** One series' history and where to go on with it. */
interface Fetched {
  shown: Signal<SeriesHistory | null>;
  growing: GrowingHistory;
  /** Frames asked for so far: where to go on from. */
  frames: number;
  /** Steps of its bins, and how many of them were allowed. */
  unit: number;
  most: number;
  /** It has come whole once, in one answer or in several; until then `shown` stays as it is. */
  isWhole: boolean;
  wanted: number;
}

/** What is asked for together. */
export type Wanted = Required<Pick<WantedHistory, 'series' | 'from' | 'most' | 'unit'>>;

/** Series in one request; more wait for the next, so that the first ones are on show early. */
const AT_ONCE = 24;
/** Frames of all these series together; the server has to read them, a hundred thousand in a second, and answers piece by piece. */
const FRAMES_AT_ONCE = 240_000;
/** The same for the first answer of a model, so that there is something to see soon, also of many runs. It has two series at least. */
const FIRST = {series: 2, frames: 2_000};
/** How many series that are not wanted are kept, in case they are wanted again. */
const SPARE = 64;

/** Follows `source` until closed. One request is under way at a time, so a late answer cannot overtake. */
export class Histories {
  readonly #fetched = new Map<number, Fetched>();
  readonly #problem = signal<string | null>(null);
  readonly #stop: () => void;
  #request: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #identity = '';

  constructor(
    private readonly source: ReadonlySignal<Source | null>,
    private readonly fetchHistory: FetchHistory,
  ) {
    this.#stop = effect(() => this.#follow());
  }

  /** Why the histories are not up to date, as a sentence; null while they are. */
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }

  /** The history of a series; null until it has been fetched. Fetched only while it is wanted. */
  of(series: number): ReadonlySignal<SeriesHistory | null> {
    return this.#of(series).shown;
  }

  /** Wants a series until the returned function is called. */
  want(series: number): () => void {
    const fetched = this.#of(series);
    fetched.wanted++;
    queueMicrotask(() => this.#pump()); // the strips of a panel are mounted together; ask for them together
    return () => {
      fetched.wanted--;
      this.#fetched.delete(series); // the last one now: what was wanted last is kept longest
      this.#fetched.set(series, fetched);
      dropSpare(this.#fetched);
    };
  }

  /** Tries again now after a failure. */
  retry(): void {
    clearTimeout(this.#timer);
    this.#problem.value = null;
    this.#pump();
  }

  close(): void {
    this.#stop();
    this.#forget();
  }

  #of(series: number): Fetched {
    const fetched = this.#fetched.get(series) ?? {shown: signal(null), ...nothing(), wanted: 0};
    this.#fetched.set(series, fetched);
    return fetched;
  }

  #follow(): void {
    const now = this.source.value;
    const identity = now === null ? '' : JSON.stringify([now.model, now.epoch]);
    if (identity !== this.#identity) this.#forget();
    this.#identity = identity;
    this.#pump();
  }

  #pump(): void {
    const now = this.source.peek();
    if (now === null || this.#request !== null || this.#problem.peek() !== null) return;
    const wanted = nextRequest(this.#fetched, now);
    if (wanted === null) return;
    const mine = (this.#request = new AbortController());
    this.fetchHistory(now.model, wanted, mine.signal).then(
      (answer) => mine === this.#request && this.#take(answer, {wanted, now}),
      (cause: unknown) => mine === this.#request && this.#fail(cause),
    );
  }

  #take(answer: History, {wanted, now}: {wanted: Wanted; now: Source}): void {
    this.#request = null;
    if (answer.epoch !== now.epoch) return; // the poll will say so too, and then everything is asked for again
    const isLast = answer.frames >= now.frames || answer.frames <= wanted.from;
    const going = wanted.series.filter((series) => wanted.from === 0 || this.#of(series).frames === wanted.from); // others were dropped meanwhile
    batch(() => going.forEach((series) => append(this.#of(series), answer, {series, most: wanted.most, isLast})));
    if (answer.frames > wanted.from) this.#pump(); // else the server is behind its own poll: wait for the next one
  }

  #fail(cause: unknown): void {
    this.#request = null;
    if (isAbort(cause)) return;
    this.#problem.value = `The histograms could not be fetched: ${messageOf(cause)}`;
    this.#timer = setTimeout(() => this.retry(), RETRY_MS);
  }

  #forget(): void {
    this.#request?.abort();
    this.#request = null;
    clearTimeout(this.#timer);
    batch(() => {
      this.#problem.value = null;
      this.#fetched.forEach((fetched) => (Object.assign(fetched, nothing()).shown.value = null));
    });
  }
}

function nothing(): Pick<Fetched, 'growing' | 'frames' | 'unit' | 'most' | 'isWhole'> {
  return {growing: new GrowingHistory(), frames: 0, unit: 0, most: 0, isWhole: false};
}

/** Where to go on from: at the beginning, when there is now room for finer bins. */
function rest({frames, unit, most}: Fetched, now: Source): {from: number; unit: number} {
  return unit > 1 && now.most > most ? {from: 0, unit: 0} : {from: frames, unit};
}

/** The series that are least behind, together, so that one that comes in several answers is finished first; null when all wanted ones are up to date. */
function nextRequest(fetched: Map<number, Fetched>, now: Source): Wanted | null {
  const wanted = [...fetched].flatMap(([id, one]) => (one.wanted > 0 ? [{id, ...rest(one, now)}] : []));
  const behind = wanted.filter(({from}) => from < now.frames).sort((a, b) => b.from - a.from);
  const [first] = behind;
  if (first === undefined) return null;
  const {from, unit} = first;
  const series = behind.filter((one) => one.from === from && one.unit === unit).map(({id}) => id);
  const most = (frames: number): number => Math.floor(frames / (now.frames - from));
  const isFirst = [...fetched.values()].every(({frames}) => frames === 0);
  const atFirst = isFirst ? Math.max(FIRST.series, most(FIRST.frames)) : AT_ONCE;
  const atOnce = Math.max(1, Math.min(AT_ONCE, most(FRAMES_AT_ONCE), atFirst));
  return {series: series.slice(0, atOnce), from, most: now.most, unit};
}

function append(fetched: Fetched, answer: History, {series, most, isLast}: {series: number; most: number; isLast: boolean}): void {
  const news = answer.series.get(series);
  if (answer.from === 0 || answer.unit !== fetched.unit) Object.assign(fetched, {growing: new GrowingHistory(answer.unit), isWhole: false});
  Object.assign(fetched, {frames: answer.frames, unit: answer.unit, most, isWhole: fetched.isWhole || isLast});
  if (news !== undefined && news.frame.length > 0) fetched.growing.append(news, answer.from);
  if (fetched.isWhole) fetched.shown.value = fetched.growing.view(answer.frames);
}

/** Who was given a signal may want its series later: the signal stays, and is filled again then. */
function dropSpare(fetched: Map<number, Fetched>): void {
  const spare = [...fetched.values()].filter(({wanted, frames}) => wanted === 0 && frames > 0);
  batch(() => spare.slice(0, Math.max(0, spare.length - SPARE)).forEach((one) => (Object.assign(one, nothing()).shown.value = null)));
}
