/** A series' history that grows at the end without being copied at every step. */

import type {SeriesHistory} from '../api/types';

type Numbers = SeriesHistory[keyof SeriesHistory];

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

  /** What has been appended so far; stays as it is when more is appended. */
  view(): T {
    return this.room.subarray(0, this.#length) as T;
  }
}

function larger<T extends Numbers>(values: T, length: number): T {
  const copy = new (values.constructor as new (length: number) => T)(length);
  copy.set(values);
  return copy;
}

/** A history to which answers of `api/history` are appended, each holding only frames later than all before. */
export class GrowingHistory {
  readonly #frame = new Growing<Uint32Array>(new Uint32Array(0));
  readonly #statistics = new Growing<Float32Array>(new Float32Array(0));
  readonly #offsets = new Growing<Uint32Array>(new Uint32Array(0));
  readonly #buckets = new Growing<Int16Array>(new Int16Array(0));
  readonly #counts = new Growing<Uint32Array>(new Uint32Array(0));

  constructor() {
    this.#offsets.append(Uint32Array.of(0));
  }

  append({frame, statistics, offsets, buckets, counts}: SeriesHistory): void {
    const before = this.#buckets.view().length;
    this.#frame.append(frame);
    this.#statistics.append(statistics);
    this.#offsets.append(offsets.subarray(1).map((offset) => offset + before));
    this.#buckets.append(buckets);
    this.#counts.append(counts);
  }

  /** All that was appended so far, as one history. */
  view(): SeriesHistory {
    return {
      frame: this.#frame.view(),
      statistics: this.#statistics.view(),
      offsets: this.#offsets.view(),
      buckets: this.#buckets.view(),
      counts: this.#counts.view(),
    };
  }
}
