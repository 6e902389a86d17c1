/** Where on the time bar the steps with NaN or infinity stand. Positions are numbers of frames. */

import type {NonFinite} from '../../api/types';

type Stretches = NonFinite['bad'];

/** A stretch of the time bar. */
export interface Span {
  from: number;
  to: number;
}

/** The frames of each stretch, and half the way to those beside it; between two frames for what an exported page leaves out. */
export function spansOf(bad: Stretches, steps: readonly number[]): Span[] {
  return bad.map(([first, last]) => {
    const from = framesBefore(steps, first);
    const stop = framesBefore(steps, last + 1);
    return from < stop ? {from: from - 0.5, to: stop - 0.5} : {from: from - 0.75, to: from - 0.25};
  });
}

/** A short span in the middle of each frame whose step is one of `kept`; ascending. */
export function keptSpans(kept: readonly number[], steps: readonly number[]): Span[] {
  const wanted = new Set(kept);
  return steps.flatMap((step, frame) => (wanted.has(step) ? [{from: frame, to: frame}] : []));
}

/** How many of ascending `steps` are below `step`. */
function framesBefore(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A mark on the bar: where it begins and how long it is, in percent of the bar. */
export interface BarMark {
  left: number;
  width: number;
}

/** The spans on a bar from frame 0 to frame `last`, cut into so many columns: one with any bad step is marked. */
export function marksOnBar(spans: readonly Span[], last: number, columns = 500): BarMark[] {
  const isMarked = new Uint8Array(columns);
  const columnOf = (position: number): number => Math.min(columns - 1, Math.max(0, Math.floor((position / Math.max(1, last)) * columns)));
  for (const {from, to} of spans) isMarked.fill(1, columnOf(from), Math.max(columnOf(from), columnOf(to - 1e-9)) + 1);
  const found: BarMark[] = [];
  for (let begin = isMarked.indexOf(1); begin >= 0; ) {
    const end = isMarked.indexOf(0, begin);
    const stop = end < 0 ? columns : end;
    found.push({left: (100 * begin) / columns, width: (100 * (stop - begin)) / columns});
    begin = isMarked.indexOf(1, stop);
  }
  return found;
}

/** The bad frame nearest to `frame`, if one is within `reach`; else `frame`. So a press on a mark shows what it marks. */
export function nearestBad(spans: readonly Span[], frame: number, reach: number): number {
  let best = frame;
  let distance = reach;
  for (const {from, to} of spans) {
    const near = Math.min(Math.max(frame, Math.ceil(from)), Math.floor(to));
    if (to - from < 1 || Math.abs(near - frame) > distance) continue; // the first is no frame of this page
    best = near;
    distance = Math.abs(near - frame);
    if (distance === 0) break;
  }
  return best;
}
