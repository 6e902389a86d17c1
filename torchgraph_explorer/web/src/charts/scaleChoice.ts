/** Chooses a value axis' scale by the data: logarithmic where on a linear one a good part of the time would be a flat line. */

import type {ScaleKind} from './scale';

/** What was over time, and how far the axis reaches for it. */
export interface Course {
  /** How far from zero each entry reaches, in the order of time. */
  sizes: ArrayLike<number>;
  /** How far from zero an axis for the first `count` entries reaches. */
  reachOf: (count: number) => number;
}

/** Of the axis' reach; values below share some ten pixels at most. */
const FLAT = 1 / 10;

/** Shares of the time that are flat: from the one on the scale is symlog, down from the other linear, between as it was before. */
const ENTER = 1 / 4;
const LEAVE = 1 / 8;

const FEWEST = 4;
/** Neighbouring entries that are looked at together, so that a value that just passes zero is not taken for a flat line. */
const TOGETHER = 5;
const GROWTH = 1.25;

/**
 * The scale for a course.
 *
 * It is decided anew only each time that there is a quarter more, and changed only when that is clear: a live chart seldom
 * changes, and a reload shows what was on show before.
 */
export function chooseScale({sizes, reachOf}: Course): ScaleKind {
  for (const count of decidedAt(sizes.length).reverse()) {
    const flat = flatShare(sizes, count, reachOf(count));
    if (flat >= ENTER) return 'symlog';
    if (flat <= LEAVE) return 'linear';
  }
  return 'linear';
}

/** The lengths, up to `length`, at which a course is looked at. */
function decidedAt(length: number): number[] {
  const found: number[] = [];
  for (let count = FEWEST; count <= length; count = Math.ceil(count * GROWTH)) found.push(count);
  return found;
}

/** The share of the time in which the usual size is a flat line, though not zero. */
function flatShare(sizes: ArrayLike<number>, count: number, reach: number): number {
  const together = Math.min(TOGETHER, Math.ceil(count / 8));
  const groups = Math.ceil(count / together);
  let flat = 0;
  for (let group = 0; group < groups; group++) {
    const size = median(sizes, group * together, Math.min(count, (group + 1) * together));
    if (size > 0 && size < FLAT * reach) flat++;
  }
  return flat / groups;
}

/** Of the finite ones; NaN, which is no size, where there are none. */
function median(sizes: ArrayLike<number>, from: number, to: number): number {
  const sorted = Float64Array.from({length: to - from}, (_, i) => sizes[from + i]!).filter(Number.isFinite).sort();
  return sorted[sorted.length >> 1] ?? NaN;
}
