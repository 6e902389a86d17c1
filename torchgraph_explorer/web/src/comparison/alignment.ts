/** Several runs on one time axis, and the frame of each that is nearest to that of the run on show. */

import type {TimeAxis} from '../charts/timeAxis';

/** The axis of one of several runs, as long as that of all. A run that has no such axis is not on it. */
export function jointAxis(own: TimeAxis, all: readonly TimeAxis[], kind: TimeAxis['kind']): TimeAxis {
  const onIt = all.filter((axis) => axis.kind === kind && axis.values.length > 0);
  const values = own.kind === kind ? own.values : new Float64Array(own.values.length).fill(NaN);
  if (onIt.length === 0) return {...own, kind, values};
  const ends = {low: Math.min(...onIt.map(({low}) => low)), high: Math.max(...onIt.map(({high}) => high))};
  return {...own, kind, values, ...ends, own: {low: own.low, high: own.high}};
}

/** The number of the frame nearest to `place` on an axis, the latest of several; null without any that is on it. */
function nearestFrame(values: ArrayLike<number>, place: number): number | null {
  let found: number | null = null;
  let least = Infinity;
  for (let frame = 0; frame < values.length; frame++) {
    const distance = Math.abs(values[frame]! - place);
    if (distance <= least) [found, least] = [frame, distance];
  }
  return found;
}

/** The frame of another run that stands beside frame `frame` of ours: the nearest on the axis, by step where only one has that axis. */
export function frameBeside(ours: TimeAxis, frame: number, theirs: TimeAxis): number | null {
  const place = ours.values[frame] ?? NaN;
  if (ours.kind === theirs.kind && !Number.isNaN(place)) return nearestFrame(theirs.values, place);
  return nearestFrame(theirs.steps, ours.steps[frame] ?? NaN);
}
