/** Joins what is new of a model to what is known already. */

import type {Known} from '../api/answers';
import type {Updates} from '../api/types';
import type {ModelData} from './data';

/** Two answers as one. The second one was asked for by a client that held the first. */
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

/** `known` with `news` from index `first` on; the same array when there are none. */
function extend<T>(known: T[], first: number, news: T[]): T[] {
  return news.length === 0 && first >= known.length ? known : [...known.slice(0, first), ...news];
}

function bringsNews(before: ModelData, updates: Updates): boolean {
  const {session, graphs, finished, warnings} = updates;
  return (
    updates.reset ||
    updates.frames.step.length > 0 ||
    updates.series.items.length > 0 ||
    !same({session, graphs, finished, warnings}, pick(before))
  );
}

function pick({session, graphs, finished, warnings}: ModelData): Pick<ModelData, 'session' | 'graphs' | 'finished' | 'warnings'> {
  return {session, graphs, finished, warnings};
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
