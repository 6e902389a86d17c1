/** Asks the server every second what is new, and says when it does not answer. */

import {batch, effect} from '@preact/signals';
import {answers, page} from '../../api/client';
import {byRank} from './ranks';
import {ApiError, isAbort, SILENT} from '../../api/errors';
import type {Runs} from '../../api/types';
import {hostRunFilter, isHiddenByHost, whenShown} from '../../host/tensorboard';
import {updateCompared} from '../comparison/state';
import {hasFlow} from '../flow/state';
import {ownViews} from '../own/views';
import * as choices from './choices';
import {filtered} from './runFilter';
import {chosenRun, connection, logdir, problem, retryAt, runs} from './runs';
import type {Connection} from './runs';
import * as shown from './shown';

const POLL_MS = 1000;
const RUNS_EVERY_POLLS = 5;
/** A run that is compared and has ended may go on, which is seldom. */
const FINISHED_EVERY_POLLS = 30;
const LONGEST_WAIT_MS = 15_000;
const PATIENCE_MS = 20_000;
const NOT_FOUND = 404;

let timer: ReturnType<typeof setTimeout> | undefined;
let asking: AbortController | null = null;
let failures = 0;
let polls = 0;
let followedFilter = '';

/** How long to wait after the given number of failures in a row. */
export function backOff(failed: number): number {
  return Math.min(POLL_MS * 2 ** Math.max(0, failed - 1), LONGEST_WAIT_MS);
}

/** Starts to ask, until the page is closed. Nothing is asked while the page, or the iframe it is in, is hidden. */
export function startAsking(): void {
  document.addEventListener('visibilitychange', () => isHidden() || askNow());
  whenShown(askNow);
  effect(followHostFilter);
  window.addEventListener('resize', () => isHidden() || asking || askNow());
  effect(() => {
    void shown.model.value;
    asking?.abort();
    askNow();
  });
}

/** Follows the host's filter of runs when that changes. A run that does not match makes way for the first one that does. */
function followHostFilter(): void {
  const filter = hostRunFilter.value;
  if (filter === followedFilter) return;
  followedFilter = filter;
  choices.runFilter.value = filter;
  const matching = filtered(runs.peek() ?? [], filter).runs;
  const [first] = matching;
  if (first !== undefined && choices.run.peek() !== null && !matching.some(({run}) => run === choices.run.peek())) openModel(first.run, null);
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

async function askAll(abort: AbortSignal): Promise<void> {
  const isTurn = polls % RUNS_EVERY_POLLS === 0 || failures > 0; // the run may be gone
  if (isTurn || runs.value === null || shown.model.value === null) showRuns(await answers.runs(abort));
  polls += 1;
  if (!abort.aborted) await Promise.all([shown.model.value?.update(abort), updateCompared(abort, polls % FINISHED_EVERY_POLLS === 0)]);
}

function succeed(): void {
  failures = 0;
  batch(() => {
    retryAt.value = null;
    problem.value = null;
    connection.value = connectionNow();
  });
}

function connectionNow(): Connection {
  if (page !== null || shown.model.value?.data.value?.finished) return 'finished';
  if (chosenRun.value === undefined && runs.value?.length !== 0) return 'missing';
  if (chosenRun.value?.models.length === 0) return 'empty';
  return shown.data.value === null && chosenRun.value !== undefined ? 'loading' : 'live';
}

function fail(cause: unknown): void {
  failures += 1;
  const isGone = cause instanceof ApiError && cause.status === NOT_FOUND && runs.value !== null && chosenRun.value === undefined;
  batch(() => {
    retryAt.value = performance.now() + backOff(failures);
    problem.value = isGone ? null : cause instanceof ApiError ? cause.message : SILENT;
    connection.value = isGone ? 'missing' : 'retrying';
  });
}

function showRuns({logdir: folder, runs: answered, flow, views = []}: Runs): void {
  const found = answered.map((run) => ({...run, models: byRank(run.models)}));
  batch(() => {
    if (JSON.stringify(runs.value) !== JSON.stringify(found)) runs.value = found;
    hasFlow.value = flow === true;
    if (JSON.stringify(ownViews.value) !== JSON.stringify(views)) ownViews.value = views;
    logdir.value = folder;
    const chosen = choices.run.value;
    const run = chosen === null ? (filtered(found, choices.runFilter.peek()).runs[0] ?? found[0]) : found.find((one) => one.run === chosen);
    if (!run) return;
    choices.run.value = run.run;
    if (choices.model.value === null) choices.model.value = run.models[0] ?? null;
  });
}

/** Shows another run, or another model of it. What was chosen is kept where it exists there too. */
export function openModel(run: string, model: string | null): void {
  const models = runs.value?.find((one) => one.run === run)?.models ?? [];
  const same = choices.model.value !== null && models.includes(choices.model.value) ? choices.model.value : models[0];
  batch(() => {
    choices.graphChoice.value = null;
    choices.optimizer.value = null;
    connection.value = 'loading';
    choices.run.value = run;
    choices.model.value = model ?? same ?? null;
  });
}
