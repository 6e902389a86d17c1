/** The frame on show of series in whose histories frames are merged: fetched alone, as it was recorded. */

import {computed, effect, signal, type ReadonlySignal} from '@preact/signals';

import type {ModelName, WantedHistory} from '../api/answers';
import {latest} from '../api/latest';
import type {History, SeriesHistory} from '../api/types';
import {entryOf, isMerged, reached} from '../history';

/** The frame on show. */
export interface Chosen {
  model: ModelName;
  epoch: number;
  frame: number;
  /** It is the last one there is, and is followed as the run grows. */
  isLatest?: boolean;
}

type FetchHistory = (model: ModelName, wanted: WantedHistory, signal: AbortSignal) => Promise<History>;
type Shown = ReadonlySignal<SeriesHistory | null>;

interface Want {
  series: number;
  history: Shown;
}

interface CloseUp {
  /** Which frame it is of. */
  chosen: Chosen;
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

  /**
   * Where to look up the chosen frame of a series: alone, if that has been fetched, else `history`. While a growing run is
   * followed, the latest frame before stays until the new one has come.
   */
  of(series: number, history: Shown): Shown {
    return computed(() => {
      const [shown, chosen] = [this.#shown.value, this.chosen.value];
      if (shown === null || chosen === null) return history.value;
      const isAwaited = isFollowing(shown.chosen, chosen) && (isMergedAt(history.value, chosen.frame) || isBeyond(history.value, chosen.frame));
      return (isSame(shown.chosen, chosen) || isAwaited ? shown.series.get(series) : undefined) ?? history.value;
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
    if (chosen === null || (before !== null && isSame(before.chosen, chosen) && series.every((id) => before.series.has(id)))) return;
    if (series.length > 0) this.#timer = setTimeout(() => this.#fetch(chosen, series), REST_MS);
  }

  #fetch(chosen: Chosen, series: number[]): void {
    const {model, epoch, frame} = chosen;
    this.#request.insist(
      (signal) => this.fetchHistory(model, {series, from: frame, to: frame + 1}, signal),
      (answer) => answer.epoch === epoch && (this.#shown.value = {chosen, series: upTo(frame + 1, answer.series)}),
      () => undefined, // what is merged stays on show and says so
    );
  }
}

/** It is known that the series have nothing before the frame `until` that is not in them. */
function upTo(until: number, series: Map<number, SeriesHistory>): Map<number, SeriesHistory> {
  return new Map([...series].map(([id, one]) => [id, {...one, until}]));
}

function isSame(one: Chosen, other: Chosen): boolean {
  return isOfSameRecord(one, other) && one.frame === other.frame;
}

function isFollowing(before: Chosen, chosen: Chosen): boolean {
  return isOfSameRecord(before, chosen) && before.isLatest === true && chosen.isLatest === true && before.frame < chosen.frame;
}

function isOfSameRecord(one: Chosen, other: Chosen): boolean {
  return one.epoch === other.epoch && JSON.stringify(one.model) === JSON.stringify(other.model);
}

/** The frame was recorded after the history was fetched. */
function isBeyond(history: SeriesHistory | null, frame: number): boolean {
  return history !== null && reached(history, frame) < frame;
}

function isMergedAt(history: SeriesHistory | null, frame: number): boolean {
  if (history === null) return false;
  const entry = entryOf(history, frame);
  return entry >= 0 && isMerged(history, entry);
}
