/** Joins what is new of a model to what is known already. */

import type {Known} from '../api/answers';
import type {Updates} from '../api/types';
import type {ModelData} from './data';

/** Two answers as one. The second one answers a client that already had the first. */
export function joinedUpdates(one: Updates, next: Updates): Updates {
  if (next.reset) return next;
  const {frames, series} = one;
  const added = {
    first: frames.first,
    step: [...frames.step, ...next.frames.step],
    time: [...frames.time, ...next.frames.time],
    clock: [...frames.clock, ...next.frames.clock],
    graph: [...frames.graph, ...next.frames.graph],
    kind: [...frames.kind, ...next.frames.kind],
    passes: [...frames.passes, ...next.frames.passes],
  };
  return {...next, reset: one.reset, frames: added, series: {first: series.first, items: [...series.items, ...next.series.items]}};
}

/** What a client knows after an answer. */
export function knownAfter({epoch, frames, series}: Updates): Known {
  return {epoch, frames: frames.first + frames.step.length, series: series.first + series.items.length};
}

/** The model's data after an answer; `before` itself when the answer brings nothing. */
export function applyUpdates(before: ModelData | null, updates: Updates): ModelData {
  const base = before === null || updates.reset ? empty(updates) : before;
  if (before !== null && !bringsNews(before, updates)) return before;
  const {frames, series} = updates;
  return {
    epoch: updates.epoch,
    session: updates.session,
    steps: extend(base.steps, frames.first, frames.step),
    times: extend(base.times, frames.first, frames.time),
    clock: extend(base.clock, frames.first, frames.clock),
    graphIds: extend(base.graphIds, frames.first, frames.graph),
    kindIds: extend(base.kindIds, frames.first, frames.kind),
    passes: extend(base.passes, frames.first, frames.passes),
    kinds: updates.kinds,
    optimizers: same(base.optimizers, updates.optimizers) ? base.optimizers : updates.optimizers,
    series: extend(base.series, series.first, series.items),
    graphs: same(base.graphs, updates.graphs) ? base.graphs : updates.graphs,
    finished: updates.finished,
    stopped: updates.stopped === true,
    warnings: updates.warnings,
  };
}

function empty({epoch}: Updates): ModelData {
  const frames = {steps: [], times: [], clock: [], graphIds: [], kindIds: [], passes: []};
  return {epoch, session: null, finished: null, stopped: false, ...frames, kinds: [], optimizers: [], series: [], graphs: [], warnings: []};
}

/** `known` with `news` from index `first` on; the same array when there are none. */
function extend<T>(known: T[], first: number, news: T[]): T[] {
  return news.length === 0 && first >= known.length ? known : [...known.slice(0, first), ...news];
}

function bringsNews(before: ModelData, updates: Updates): boolean {
  const {session, graphs, finished, stopped = false, warnings, optimizers} = updates;
  return (
    updates.reset ||
    updates.frames.step.length > 0 ||
    updates.series.items.length > 0 ||
    !same({session, graphs, finished, stopped, warnings, optimizers}, pick(before))
  );
}

function pick({session, graphs, finished, stopped, warnings, optimizers}: ModelData): Partial<ModelData> {
  return {session, graphs, finished, stopped, warnings, optimizers};
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
