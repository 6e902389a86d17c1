/** Asks the server every second what is new, and says when it does not answer. */

import {batch, effect, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import {ApiError, fetchRuns, fetchUpdates, isAbort, page} from '../../api/client';
import type {Held, Model} from '../../api/client';
import type {RunInfo, Runs, Updates} from '../../api/types';
import {hostRunFilter, isHiddenByHost, whenShown} from '../../host/tensorboard';
import {applyUpdates, frameAtStep, heldAfter, joinedUpdates} from '../../model/updates';
import {filtered, runFilter} from './runFilter';
import * as store from './choices';

const POLL_MS = 1000;
const RUNS_EVERY_POLLS = 5;
const LONGEST_WAIT_MS = 15_000;
const PATIENCE_MS = 20_000;

/** When the next try is made after a failure, in milliseconds of `performance.now()`; null while all is well. */
export const retryAt: Signal<number | null> = signal(null);
/** The step that a link asks for, until the frames are known. */
export const wantedStep: Signal<number | null> = signal(null);

let timer: ReturnType<typeof setTimeout> | undefined;
let asking: AbortController | null = null;
let failures = 0;
let polls = 0;
let followedFilter = '';
/** The model that `store.data` is of. */
let heldModel: Model | null = null;

/** How long to wait after the given number of failures in a row. */
export function backOff(failed: number): number {
  return Math.min(POLL_MS * 2 ** Math.max(0, failed - 1), LONGEST_WAIT_MS);
}

/** Starts to ask, until the page is closed. Nothing is asked while the page, or the frame it is in, is hidden. */
export function start(): void {
  document.addEventListener('visibilitychange', () => isHidden() || askNow());
  whenShown(askNow);
  effect(followHostFilter);
  window.addEventListener('resize', () => isHidden() || asking || askNow());
  effect(() => {
    void [store.run.value, store.model.value];
    asking?.abort();
    askNow();
  });
}

/** When the host filters its runs anew, so do we; a run that is not among them makes way for the first that is. */
function followHostFilter(): void {
  const filter = hostRunFilter.value;
  if (filter === followedFilter) return;
  followedFilter = filter;
  runFilter.value = filter;
  const {runs} = filtered(store.runs.peek() ?? [], filter);
  const [first] = runs;
  if (first !== undefined && store.run.peek() !== null && !runs.some(({run}) => run === store.run.peek())) openModel(first.run, null);
}

/** Asks at once, instead of when the wait is over. */
export function askNow(): void {
  askIn(0);
}

function askIn(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void poll(), ms);
}

function isHidden(): boolean {
  return document.hidden || window.innerWidth === 0 || isHiddenByHost.peek();
}

async function poll(): Promise<void> {
  if (isHidden()) return;
  if (asking) return askIn(50);
  asking = new AbortController();
  try {
    await askAll(AbortSignal.any([asking.signal, AbortSignal.timeout(PATIENCE_MS)]));
    succeed();
  } catch (cause) {
    if (!isAbort(cause)) fail(cause);
  } finally {
    if (asking.signal.aborted) askIn(0);
    else if (failures > 0 || page === null) askIn(failures > 0 ? backOff(failures) : POLL_MS);
    asking = null;
  }
}

async function askAll(signal: AbortSignal): Promise<void> {
  const isTurn = polls % RUNS_EVERY_POLLS === 0;
  if (isTurn || store.runs.value === null || chosenModel() === null) showRuns(await fetchRuns(signal));
  polls += 1;
  const model = chosenModel();
  if (model === null || signal.aborted) return;
  let updates = await fetchUpdates(model, held(model), signal);
  while (updates.more) updates = joinedUpdates(updates, await fetchUpdates(model, heldAfter(updates), signal));
  showUpdates(updates);
}

function succeed(): void {
  failures = 0;
  batch(() => {
    retryAt.value = null;
    store.problem.value = null;
    store.connection.value = connection();
  });
}

function connection(): store.Connection {
  if (page !== null || store.data.value?.finished) return 'finished';
  return chosenRun()?.models.length === 0 ? 'empty' : 'live';
}

/** The run on show, as the list of runs has it. */
export function chosenRun(): RunInfo | undefined {
  return store.runs.value?.find((one) => one.run === store.run.value);
}

function fail(cause: unknown): void {
  failures += 1;
  batch(() => {
    retryAt.value = performance.now() + backOff(failures);
    store.problem.value = cause instanceof ApiError ? cause.message : 'The server does not answer.';
    store.connection.value = 'retrying';
  });
}

/** The run and model on show; null before they are known. */
export function chosenModel(): Model | null {
  const run = store.run.value;
  const model = store.model.value;
  return run === null || model === null ? null : {run, model};
}

function isHeld({run, model}: Model): boolean {
  return heldModel?.run === run && heldModel.model === model;
}

function held(model: Model): Held {
  const data = store.data.value;
  if (data === null || !isHeld(model)) return {epoch: -1, frames: 0, series: 0};
  return {epoch: data.epoch, frames: data.steps.length, series: data.series.length};
}

function showRuns({logdir, runs}: Runs): void {
  batch(() => {
    store.logdir.value = logdir;
    if (JSON.stringify(store.runs.value) !== JSON.stringify(runs)) store.runs.value = runs;
    const run = store.run.value === null ? (filtered(runs, runFilter.peek()).runs[0] ?? runs[0]) : runs.find((one) => one.run === store.run.value);
    if (!run) return;
    store.run.value = run.run;
    if (store.model.value === null) store.model.value = run.models[0] ?? null;
  });
}

function showUpdates(updates: Updates): void {
  const model = {run: updates.run, model: updates.model};
  const before = isHeld(model) ? store.data.value : null;
  const step = wantedStep.value ?? shownStep(before);
  heldModel = model;
  const data = applyUpdates(before, updates);
  if (data === before) return;
  batch(() => {
    store.data.value = data;
    const isRenumbered = before === null || updates.reset || wantedStep.value !== null;
    if (isRenumbered && data.steps.length > 0) {
      store.frame.value = step === null ? null : frameAtStep(data.steps, step);
      wantedStep.value = null;
    }
  });
}

/** The step that the user chose; null when the latest is followed. */
function shownStep(data: store.ModelData | null): number | null {
  return store.frame.value === null ? null : (data?.steps[store.frame.value] ?? null);
}

/** Shows another run, or another model of it. What was chosen is kept where it exists there too. */
export function openModel(run: string, model: string | null): void {
  const models = store.runs.value?.find((one) => one.run === run)?.models ?? [];
  const same = store.model.value !== null && models.includes(store.model.value) ? store.model.value : models[0];
  batch(() => {
    wantedStep.value = shownStep(store.data.value);
    store.data.value = null;
    store.graph.value = null;
    store.frame.value = null;
    store.graphChoice.value = null;
    store.connection.value = 'loading';
    store.run.value = run;
    store.model.value = model ?? same ?? null;
  });
}
