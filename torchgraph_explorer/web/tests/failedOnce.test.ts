/** What failed once, and may have passed: it is asked for again before long, also of runs that have ended. */

import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';
import type {Answers, ModelName} from '../src/api/answers';
import {ApiError} from '../src/api/errors';
import {Precedence} from '../src/api/precedence';
import type {ComparisonAnswer, RunInfo, Updates} from '../src/api/types';
import {GRAPH} from './fixtures';

const BUSY = new ApiError('Busy.', 503);
const GONE = new ApiError('There is no run.', 404);
const never = (): Promise<never> => new Promise(() => undefined);
const passing = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function updatesOf({run, model}: ModelName, epoch = 0): Updates {
  const step = [0, 1];
  const frames = {first: 0, step, time: step, clock: step, graph: [0, 0], kind: [null, null], passes: step.map((): [number, number] => [1, 1])};
  const finished = {time: 1, notes: []};
  const graphs = [{graph: 0, first_step: 0, revision: 0}];
  return {run, model, epoch, reset: true, frames, kinds: [], optimizers: [], graphs, session: null, series: {first: 0, items: []}, finished, warnings: [], more: false} as unknown as Updates;
}

const EQUAL = {alignment: 'exact', first_divergence: null, series: []} as unknown as ComparisonAnswer;
const updates = vi.fn<Answers['updates']>();
const compare = vi.fn<Answers['compare']>();
const server = {
  updates,
  compare,
  graph: async () => GRAPH,
  frame: async (_: ModelName, step: number) => ({epoch: 0, step, series: new Uint32Array(0), statistics: new Float32Array(0)}),
  ...{runs: never, layout: never, history: never, nonfinite: never, findings: never},
  scalars: async () => null,
} as unknown as Answers;
vi.mock('../src/api/client', () => ({page: null, answers: server, chartAnswers: server, precedence: new Precedence()}));

const [{runs}, shown, choices, state, divergence] = await Promise.all([
  import('../src/view/state/runs'),
  import('../src/view/state/shown'),
  import('../src/view/state/choices'),
  import('../src/view/comparison/state'),
  import('../src/view/comparison/divergence'),
]);
shown.startShowing();
state.startComparing();
divergence.startDivergence();

beforeEach(() => {
  vi.useFakeTimers();
  updates.mockReset().mockImplementation(async (model) => updatesOf(model));
  compare.mockReset().mockImplementation(async () => EQUAL);
});

afterEach(() => {
  state.change({runs: []});
  [choices.run.value, choices.model.value] = [null, null];
  vi.useRealTimers();
});

/** As the page polls. */
async function poll(): Promise<void> {
  const {signal} = new AbortController();
  await Promise.all([shown.model.value?.update(signal), state.updateCompared(signal, false)]);
}

async function open(): Promise<void> {
  [choices.run.value, choices.model.value] = ['a', 'm'];
  state.change({runs: [{run: 'b', model: 'm', number: 1}]});
  await passing(1);
}

const other = (): unknown => state.against.value?.model.data.value?.steps;

describe('a run that is compared', () => {
  test.each([
    ['is asked again at the next poll if its server was busy', BUSY, [0, 1], []],
    ['is not asked at each poll if it is not there', GONE, undefined, ['b: There is no run.']],
  ])('%s', async (_, cause, steps, problems) => {
    updates.mockRejectedValueOnce(cause).mockRejectedValueOnce(cause); // that of the run on show is not asked before the poll
    updates.mockImplementation(async (model) => updatesOf(model));
    await open();
    expect(state.problems.value).toHaveLength(1);
    await poll().catch(() => undefined);
    await poll();
    expect([other(), state.problems.value]).toEqual([steps, problems]);
  });
});

test('A run that is compared, and had ended, is asked again when it has been written again', async () => {
  const listed = (last_write: number): void => void (runs.value = ['a', 'b'].map((run) => ({run, models: ['m'], last_write, error: null}) as unknown as RunInfo));
  listed(1);
  await open();
  await poll();
  expect(other()).toEqual([0, 1]);
  updates.mockClear().mockImplementation(async (model) => updatesOf(model, 1));
  await poll();
  listed(2);
  await poll();
  await poll();
  expect(updates.mock.calls.filter(([{run}]) => run === 'b')).toHaveLength(1);
});

describe('the comparison of two runs', () => {
  test('is asked for again if the server was busy', async () => {
    compare.mockRejectedValueOnce(BUSY);
    await open();
    await poll();
    await passing(500);
    expect(divergence.comparison.value).toMatchObject({answer: null, problem: 'Busy.'});
    await passing(3000);
    expect(divergence.comparison.value).toMatchObject({answer: EQUAL, problem: null});
    await passing(60_000);
    expect(compare).toHaveBeenCalledTimes(2);
  });

  test('is asked for again if a run has been written anew, with as many steps', async () => {
    await open();
    await poll();
    await passing(500);
    updates.mockImplementation(async (model) => updatesOf(model, 1));
    await poll();
    await passing(20_000);
    expect(compare).toHaveBeenCalledTimes(2);
  });
});
