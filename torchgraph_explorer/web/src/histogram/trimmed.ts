/** What a histogram spans without its most extreme elements: the meaning of `reject_outlier_proportion`. */

import {quantiles, spanOf, total, type Bounds, type Histogram} from './histogram';

/** The bounds of a histogram without the proportion `reject` of its elements that is farthest from the median. */
export function trimmed(histogram: Histogram, full: Bounds, reject: number): Bounds {
  const [median] = quantiles(histogram, [0.5], full) as [number];
  if (!(full.low < full.high)) return full;
  const reach = peel(ringsAround(histogram, median, full), reject * total(histogram));
  return {low: Math.max(full.low, median - reach), high: Math.min(full.high, median + reach)};
}

/** Elements at distances from `near` to `far` from a centre, spread evenly; all at one distance when these are equal. */
interface Ring {
  near: number;
  far: number;
  count: number;
}

/** The rings of either side of the centre, the outermost last. */
type Sides = [below: Ring[], above: Ring[]];

function ringsAround({buckets, counts}: Histogram, centre: number, full: Bounds): Sides {
  const [below, above]: Sides = [[], []];
  for (let i = counts.length - 1; i >= 0; i--) {
    const [low, high] = spanOf(buckets[i]!, full);
    const count = counts[i]!;
    const share = high <= centre ? 1 : low >= centre ? 0 : (centre - low) / (high - low);
    if (share > 0) below.push({near: Math.max(0, centre - high), far: centre - low, count: share * count});
    if (share < 1) above.push({near: Math.max(0, low - centre), far: high - centre, count: (1 - share) * count});
  }
  return [below, above.reverse()];
}

/** Takes rings off from outside, on both sides alike, until `budget` elements are gone. How far what is left reaches. */
function peel(sides: Sides, budget: number): number {
  let left = budget;
  for (;;) {
    const heads = sides.flatMap((side) => side.at(-1) ?? []);
    if (heads.length === 0) return 0;
    const reach = Math.max(...heads.map(({far}) => far));
    const stop = Math.max(...heads.map(({near, far}) => (far === reach ? near : far)));
    const mass = heads.reduce((sum, ring) => sum + beyond(ring, stop), 0);
    if (mass > left) return reach - (left / mass) * (reach - stop);
    left -= mass;
    sides.forEach((side) => shorten(side, stop));
  }
}

/** How many of a ring's elements are farther away than `stop`, or, where all are at one distance, not nearer. */
function beyond({near, far, count}: Ring, stop: number): number {
  if (far === near) return far >= stop ? count : 0;
  return far > stop ? (count * (far - stop)) / (far - near) : 0;
}

function shorten(side: Ring[], stop: number): void {
  const ring = side.at(-1);
  if (ring === undefined || ring.far < stop) return;
  ring.count -= beyond(ring, stop);
  ring.far = stop;
  if (stop <= ring.near) side.pop();
}
