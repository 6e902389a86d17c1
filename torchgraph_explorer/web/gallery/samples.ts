/** Histories made from plain numbers, as the server would answer them: for the gallery and for tests. */

import {ofFrames} from '../src/api/frames';
import {STATISTICS, type SeriesHistory} from '../src/api/types';
import {bucketOf} from '../src/histogram/buckets';

/** A frame's elements. */
export type Elements = ArrayLike<number>;

/** A series with the given elements per frame; null where the series is not in the frame. */
export function historyFrom(frames: readonly (Elements | null)[]): SeriesHistory {
  const present = frames.flatMap((elements, frame) => (elements === null ? [] : [{frame, elements}]));
  const counted = present.map(({elements}) => count(elements));
  const offsets = [0];
  counted.forEach(({size}) => offsets.push(offsets.at(-1)! + size));
  return ofFrames({
    frame: Uint32Array.from(present, ({frame}) => frame),
    statistics: Float32Array.from(present.flatMap(({elements}) => statisticsOf(elements))),
    offsets: Uint32Array.from(offsets),
    buckets: Int16Array.from(counted.flatMap((buckets) => [...buckets.keys()])),
    counts: Uint32Array.from(counted.flatMap((buckets) => [...buckets.values()])),
  });
}

function count(elements: Elements): Map<number, number> {
  const buckets = new Map<number, number>();
  for (const value of Array.from(elements).filter(Number.isFinite)) {
    const bucket = bucketOf(value);
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }
  return new Map([...buckets].sort(([a], [b]) => a - b));
}

function statisticsOf(elements: Elements): number[] {
  const all = Array.from(elements);
  const finite = all.filter(Number.isFinite);
  const mean = average(finite);
  const row: Record<(typeof STATISTICS)[number], number> = {
    count: all.length,
    sampled: finite.length,
    nan: all.filter(Number.isNaN).length,
    positive_infinity: all.filter((value) => value === Infinity).length,
    negative_infinity: all.filter((value) => value === -Infinity).length,
    zeros: finite.filter((value) => value === 0).length,
    min: finite.length ? finite.reduce((a, b) => Math.min(a, b)) : NaN,
    max: finite.length ? finite.reduce((a, b) => Math.max(a, b)) : NaN,
    mean,
    absolute_mean: average(finite.map(Math.abs)),
    std: Math.sqrt(average(finite.map((value) => (value - mean) ** 2))),
    l2_norm: Math.sqrt(finite.reduce((sum, value) => sum + value ** 2, 0)),
  };
  return STATISTICS.map((name) => row[name]);
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Uniform random numbers in [0, 1), the same ones for the same seed. Source: mulberry32, Tommy Ettinger (public domain). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `size` draws from a normal distribution. */
export function normal(random: () => number, size: number, {mean = 0, std = 1} = {}): number[] {
  return Array.from({length: size}, () => mean + std * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
