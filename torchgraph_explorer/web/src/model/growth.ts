/** A series' history that grows at the end without being copied at every step. */

import {STATISTICS, type SeriesHistory} from '../api/types';

type Numbers = Exclude<SeriesHistory[keyof SeriesHistory], number | undefined>;
const WIDTH = STATISTICS.length;

/** Numbers that an entry has of its own, by field. */
const PER_ENTRY = {frame: 1, last: 1, merged: 1, bad: 1, statistics: WIDTH, lowest: WIDTH, highest: WIDTH} as const;
const FIELDS = Object.keys(PER_ENTRY) as (keyof typeof PER_ENTRY)[];

/** A typed array with room to grow. */
class Growing<T extends Numbers> {
  #length = 0;

  constructor(private room: T) {}

  append(values: T): void {
    const length = this.#length + values.length;
    if (length > this.room.length) this.room = larger(this.room, Math.max(length, 2 * this.room.length));
    this.room.set(values, this.#length);
    this.#length = length;
  }

  cut(length: number): void {
    this.#length = length;
  }

  /** What there is now; stays as it is when more is appended, until that is cut off. */
  view(): T {
    return this.room.subarray(0, this.#length) as T;
  }
}

function larger<T extends Numbers>(values: T, length: number): T {
  const copy = new (values.constructor as new (length: number) => T)(length);
  copy.set(values);
  return copy;
}

/** A history to which answers of `api/history` are appended, all in bins of the same `unit` steps. */
export class GrowingHistory {
  readonly #perEntry = {
    frame: new Growing<Uint32Array>(new Uint32Array(0)),
    last: new Growing<Uint32Array>(new Uint32Array(0)),
    merged: new Growing<Uint32Array>(new Uint32Array(0)),
    bad: new Growing<Uint32Array>(new Uint32Array(0)),
    statistics: new Growing<Float32Array>(new Float32Array(0)),
    lowest: new Growing<Float32Array>(new Float32Array(0)),
    highest: new Growing<Float32Array>(new Float32Array(0)),
  };
  readonly #offsets = new Growing<Uint32Array>(new Uint32Array(0));
  readonly #buckets = new Growing<Int16Array>(new Int16Array(0));
  readonly #counts = new Growing<Uint32Array>(new Uint32Array(0));

  constructor(private readonly unit = 1) {
    this.#offsets.append(Uint32Array.of(0));
  }

  /** Appends entries that begin at frame `from` or later, replacing those from there on. */
  append(news: SeriesHistory, from: number): void {
    this.#cut(from);
    const before = this.#buckets.view().length;
    for (const field of FIELDS) (this.#perEntry[field] as Growing<Numbers>).append(news[field]);
    this.#offsets.append(news.offsets.subarray(1).map((offset) => offset + before));
    this.#buckets.append(news.buckets);
    this.#counts.append(news.counts);
  }

  #cut(from: number): void {
    const frames = this.#perEntry.frame.view();
    let kept = frames.length;
    while (kept > 0 && (frames[kept - 1] as number) >= from) kept--;
    for (const field of FIELDS) this.#perEntry[field].cut(kept * PER_ENTRY[field]);
    const entries = this.#offsets.view()[kept] as number;
    this.#offsets.cut(kept + 1);
    this.#buckets.cut(entries);
    this.#counts.cut(entries);
  }

  /** All that was appended so far, as one history of the first `until` frames. */
  view(until?: number): SeriesHistory {
    const {frame, last, merged, bad, statistics, lowest, highest} = this.#perEntry;
    return {
      unit: this.unit,
      frame: frame.view(),
      last: last.view(),
      merged: merged.view(),
      bad: bad.view(),
      statistics: statistics.view(),
      lowest: lowest.view(),
      highest: highest.view(),
      offsets: this.#offsets.view(),
      buckets: this.#buckets.view(),
      counts: this.#counts.view(),
      ...(until === undefined ? {} : {until}),
    };
  }
}
