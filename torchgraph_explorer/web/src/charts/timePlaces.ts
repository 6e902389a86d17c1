/** Where steps stand on a time axis, also those between the recorded ones. */

import {interpolated} from './interpolate';
import {scalarOf, type FrameTimes, type TimeKind} from './timeAxis';

/** Points of a scalar that never falls: steps and values, both ascending. */
export interface ScalarPoints {
  steps: readonly number[];
  values: readonly number[];
}

/** The number on the axis of a step, and of the time when something was logged at it; NaN where it has none. */
export type Place = (step: number, time: number) => number;

/** Places things on the axis `kind`. The second clock is known at frames, a scalar where it was logged; both are interpolated. */
export function placing(kind: TimeKind, frames: FrameTimes, points: ScalarPoints | null): Place {
  if (kind === 'wall') return (_, time) => time;
  if (kind === 'elapsed') return (_, time) => time - (frames.start ?? 0);
  if (kind === 'clock') {
    const known = Array.from(frames.steps).flatMap((step, i) => (frames.clock[i] == null ? [] : [[step, frames.clock[i]!] as const]));
    const [steps, values] = [known.map(([step]) => step), known.map(([, value]) => value)];
    return (step) => interpolated(steps, values, step);
  }
  if (scalarOf(kind) !== null && points !== null) return (step) => interpolated(points.steps, points.values, step);
  return (step) => step;
}
