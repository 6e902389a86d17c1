/** The frame on show of series in whose histories frames are merged: fetched alone, as it was recorded. */

import {computed, effect, signal, type ReadonlySignal} from '@preact/signals';

import type {ModelName, WantedHistory} from '../api/answers';
import {latest} from '../api/latest';
import type {History, SeriesHistory} from '../api/types';
import {entryOf, isMerged} from '../history';

/** The frame on show. */
export interface Chosen {
  model: ModelName;
  epoch: number;
  frame: number;
}

type FetchHistory = (model: ModelName, wanted: WantedHistory, signal: AbortSignal) => Promise<History>;
type Shown = ReadonlySignal<SeriesHistory | null>;

interface Want {
  series: number;
  history: Shown;
}

interface CloseUp {
  /** Which frame it is of. */
  name: string;
  series: Map<number, SeriesHistory>;
}

/** Nothing is fetched while the user drags through the steps. */
const REST_MS = 80;

/** Follows `chosen` until closed. */
export class CloseUps {
  readonly #shown = signal<CloseUp | null>(null);
  readonly #wanted = signal<readonly Want[]>([]);
  readonly #request = latest();
  readonly #stop: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly chosen: ReadonlySignal<Chosen | null>,
    private readonly fetchHistory: FetchHistory,
  ) {
    this.#stop = effect(() => this.#follow());
  }

  close(): void {
    this.#stop();
    clearTimeout(this.#timer);
    this.#request.abort();
  }

  /** Where to look up the chosen frame of a series: alone, if that has been fetched, else `history`. */
  of(series: number, history: Shown): Shown {
    return computed(() => {
      const [shown, chosen] = [this.#shown.value, this.chosen.value];
      return (shown?.name === nameOf(chosen) ? shown?.series.get(series) : undefined) ?? history.value;
    });
  }

  /** Wants the close-ups of a series until the returned function is called. */
  want(series: number, history: Shown): () => void {
    const mine = {series, history};
    this.#wanted.value = [...this.#wanted.peek(), mine];
    return () => (this.#wanted.value = this.#wanted.peek().filter((one) => one !== mine));
  }

  #follow(): void {
    const chosen = this.chosen.value;
    const needed = chosen === null ? [] : this.#wanted.value.filter(({history}) => isMergedAt(history.value, chosen.frame));
    const series = [...new Set(needed.map((one) => one.series))];
    const before = this.#shown.peek();
    clearTimeout(this.#timer);
    this.#request.abort();
    if (chosen === null || (before?.name === nameOf(chosen) && series.every((id) => before.series.has(id)))) return;
    if (series.length > 0) this.#timer = setTimeout(() => this.#fetch(chosen, series), REST_MS);
  }

  #fetch(chosen: Chosen, series: number[]): void {
    const {model, epoch, frame} = chosen;
    this.#request.insist(
      (signal) => this.fetchHistory(model, {series, from: frame, to: frame + 1}, signal),
      (answer) => answer.epoch === epoch && (this.#shown.value = {name: nameOf(chosen), series: answer.series}),
      () => undefined, // what is merged stays on show and says so
    );
  }
}

function nameOf(chosen: Chosen | null): string {
  return JSON.stringify(chosen);
}

function isMergedAt(history: SeriesHistory | null, frame: number): boolean {
  if (history === null) return false;
  const entry = entryOf(history, frame);
  return entry >= 0 && isMerged(history, entry);
}
