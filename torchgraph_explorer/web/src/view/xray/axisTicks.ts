/** The steps that are written below the x-ray. */

import {ticks} from 'd3-array';

import {stepNumbers} from '../../charts/format';

/** Pixels for a short label and the room beside it. */
const USUAL_PX = 70;
const BETWEEN_PX = 8;

export interface AxisTick {
  step: number;
  text: string;
}

/** Round steps from `from` to `last`, as many as have room on an axis of `width` pixels that ends at `to`. */
export function axisTicks({from, to, last, width}: {from: number; to: number; last: number; width: number}, widthOf: (text: string) => number): AxisTick[] {
  for (let count = Math.max(1, Math.floor(width / USUAL_PX)); ; count--) {
    const steps = ticks(from, to, count).filter((one) => Number.isInteger(one) && one <= last);
    const texts = stepNumbers(steps);
    const widest = Math.max(0, ...texts.map(widthOf));
    const apart = steps.length > 1 ? ((steps[1]! - steps[0]!) / (to - from)) * width : Infinity;
    // The first may stand at the edge, beside its place and not around it.
    if (count === 1 || apart >= 1.5 * widest + BETWEEN_PX) return steps.map((step, at) => ({step, text: texts[at]!}));
  }
}
