/** What a histogram spans without its most extreme elements: the meaning of `reject_outlier_proportion`. */

import {lowerEdge, upperEdge} from './buckets';
import {clamp, quantiles, total, type Bounds, type Histogram} from './histogram';

/** The bounds of a histogram without the proportion `reject` of its elements that is farthest from the median. */
export function trimmed(histogram: Histogram, full: Bounds, reject: number): Bounds {
  const [median] = quantiles(histogram, [0.5], full) as [number];
  if (!(full.low < full.high)) return full;
  const reach = peel(new Below(histogram, median, full), new Above(histogram, median, full), reject * total(histogram));
  return {low: Math.max(full.low, median - reach), high: Math.min(full.high, median + reach)};
}

/**
 * The elements on one side of a centre, from outside, bucket by bucket: elements at distances from `near` to `far` from the
 * centre, spread evenly; all at one distance when these are equal.
 *
 * It is worked out in place, only as far as elements are taken off: every entry of every strip on show is.
 */
abstract class Side {
  near = 0;
  far = 0;
  count = 0;
  isEmpty = false;

  protected constructor(
    protected readonly histogram: Histogram,
    protected readonly centre: number,
    private readonly full: Bounds,
    protected at: number,
  ) {
    this.#take();
  }

  /** How many elements of the outermost ring are farther away than `stop`, or, where all are at one distance, not nearer. */
  beyond(stop: number): number {
    if (this.isEmpty) return 0;
    if (this.far === this.near) return this.far >= stop ? this.count : 0;
    return this.far > stop ? (this.count * (this.far - stop)) / (this.far - this.near) : 0;
  }

  /** Takes those off. */
  shorten(stop: number): void {
    if (this.isEmpty || this.far < stop) return;
    this.count -= this.beyond(stop);
    this.far = stop;
    if (stop <= this.near) this.#take();
  }

  #take(): void {
    const bucket = this.histogram.buckets[this.at];
    if (bucket === undefined) {
      this.isEmpty = true;
      return;
    }
    const low = bucket === 0 ? 0 : clamp(lowerEdge(bucket), this.full.low, this.full.high);
    const high = bucket === 0 ? 0 : clamp(upperEdge(bucket), this.full.low, this.full.high);
    const below = high <= this.centre ? 1 : low >= this.centre ? 0 : (this.centre - low) / (high - low);
    this.take(low, high, below);
  }

  /** Takes the next bucket, of which the share `below` is below the centre. */
  protected abstract take(low: number, high: number, below: number): void;
}

class Below extends Side {
  constructor(histogram: Histogram, centre: number, full: Bounds) {
    super(histogram, centre, full, 0);
  }

  protected take(low: number, high: number, below: number): void {
    this.isEmpty = below === 0;
    this.near = Math.max(0, this.centre - high);
    this.far = this.centre - low;
    this.count = below * this.histogram.counts[this.at++]!;
  }
}

class Above extends Side {
  constructor(histogram: Histogram, centre: number, full: Bounds) {
    super(histogram, centre, full, histogram.counts.length - 1);
  }

  protected take(low: number, high: number, below: number): void {
    this.isEmpty = below === 1;
    this.near = Math.max(0, low - this.centre);
    this.far = high - this.centre;
    this.count = (1 - below) * this.histogram.counts[this.at--]!;
  }
}

/** Takes elements off from outside, on both sides alike, until `budget` of them are gone. How far what is left reaches. */
function peel(one: Side, other: Side, budget: number): number {
  let left = budget;
  while (!one.isEmpty || !other.isEmpty) {
    const [far, otherFar] = [one.isEmpty ? -1 : one.far, other.isEmpty ? -1 : other.far];
    const reach = Math.max(far, otherFar);
    const stop = Math.max(far === reach ? one.near : far, otherFar === reach ? other.near : otherFar);
    const mass = one.beyond(stop) + other.beyond(stop);
    if (mass > left) return reach - (left / mass) * (reach - stop);
    left -= mass;
    one.shorten(stop);
    other.shorten(stop);
  }
  return 0;
}
