/** Joins what is new to what is held. */

import type {Held} from '../api/client';
import type {Updates} from '../api/types';
import type {ModelData} from '../view/state/choices';

/** Two answers as one, the second of which was asked for by who held the first. */
export function joinedUpdates(one: Updates, next: Updates): Updates {
  if (next.reset) return next;
  const {frames, series} = one;
  const added = {
    first: frames.first,
    step: [...frames.step, ...next.frames.step],
    time: [...frames.time, ...next.frames.time],
    clock: [...frames.clock, ...next.frames.clock],
    graph: [...frames.graph, ...next.frames.graph],
  };
  return {...next, reset: one.reset, frames: added, series: {first: series.first, items: [...series.items, ...next.series.items]}};
}

/** What a client holds after an answer. */
export function heldAfter({epoch, frames, series}: Updates): Held {
  return {epoch, frames: frames.first + frames.step.length, series: series.first + series.items.length};
}

/** The model's data after an answer; `held` itself when the answer brings nothing. */
export function applyUpdates(held: ModelData | null, updates: Updates): ModelData {
  const base = held === null || updates.reset ? empty(updates) : held;
  if (held !== null && !bringsNews(held, updates)) return held;
  const {frames, series} = updates;
  return {
    epoch: updates.epoch,
    session: updates.session,
    steps: extend(base.steps, frames.first, frames.step),
    times: extend(base.times, frames.first, frames.time),
    clock: extend(base.clock, frames.first, frames.clock),
    graphIds: extend(base.graphIds, frames.first, frames.graph),
    series: extend(base.series, series.first, series.items),
    graphs: same(base.graphs, updates.graphs) ? base.graphs : updates.graphs,
    finished: updates.finished,
    warnings: updates.warnings,
  };
}

function empty({epoch}: Updates): ModelData {
  const none = {steps: [], times: [], clock: [], graphIds: [], series: [], graphs: [], warnings: []};
  return {epoch, session: null, finished: null, ...none};
}

/** `held` with `news` from index `first` on; the same array when there are none. */
function extend<T>(held: T[], first: number, news: T[]): T[] {
  return news.length === 0 && first >= held.length ? held : [...held.slice(0, first), ...news];
}

function bringsNews(held: ModelData, updates: Updates): boolean {
  const {session, graphs, finished, warnings} = updates;
  return (
    updates.reset ||
    updates.frames.step.length > 0 ||
    updates.series.items.length > 0 ||
    !same({session, graphs, finished, warnings}, {...pick(held)})
  );
}

function pick({session, graphs, finished, warnings}: ModelData): Pick<ModelData, 'session' | 'graphs' | 'finished' | 'warnings'> {
  return {session, graphs, finished, warnings};
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Index of the frame at `step`, or of the last one before it; the first when all are later; null without frames. */
export function frameAtStep(steps: readonly number[], step: number): number | null {
  if (steps.length === 0) return null;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as number) <= step) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

const RECENT = 20;

/**
 * The graph that most of the last frames have, so that steps which call the model in turn in two ways do not make the drawing
 * flicker; of equals the one seen first. Null while none is known.
 */
export function usualGraph(graphIds: readonly (number | null)[]): number | null {
  const counts = new Map<number, number>();
  for (const id of graphIds.slice(-RECENT)) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
  const ranked = [...counts].sort(([id, count], [otherId, otherCount]) => otherCount - count || id - otherId);
  return ranked[0]?.[0] ?? null;
}
