import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';
import type {Answers, ModelName} from '../src/api/answers';
import type {StepKind, Updates} from '../src/api/types';
import {GRAPH} from './fixtures';

const ANSWER_MS = 300;
const OPTIMIZERS = ['Adam', 'Adam #2'];
const KINDS: StepKind[] = OPTIMIZERS.map((name, kind) => ({kind, end: 'update', optimizers: [name]}));

const later = <T>(answer: T): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ANSWER_MS));
const passing = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const never = (): Promise<never> => new Promise(() => undefined);

/** Of ten steps, that two optimizers made in turn, those of the one that is asked for. */
function updatesOf({run, model, optimizer}: ModelName): Updates {
  const step = [...Array(10).keys()].filter((one) => optimizer === undefined || OPTIMIZERS[one % 2] === optimizer);
  const frames = {first: 0, step, time: step, clock: step, graph: step.map(() => 0), kind: step.map((one) => one % 2)};
  const passes = step.map((): [number, number] => [1, 1]);
  const nothing = {session: null, series: {first: 0, items: []}, finished: null, warnings: [], more: false};
  const graphs = [{graph: 0, first_step: 0, revision: 0}];
  return {run, model, epoch: 0, reset: true, frames: {...frames, passes}, kinds: KINDS, optimizers: OPTIMIZERS, graphs, ...nothing};
}

const updates = vi.fn<Answers['updates']>();
const server: Answers = {
  updates,
  graph: () => later(GRAPH),
  frame: (_, step) => later({epoch: 0, step, series: new Uint32Array(0), statistics: new Float32Array(0)}),
  runs: never,
  layout: never,
  history: never,
  nonfinite: never,
  findings: never,
  explanation: never,
  scalars: async () => null,
  xray: async () => null,
  compare: never,
    changes: async () => Promise.reject(new Error()),
    calls: async () => Promise.reject(new Error()),
    cooccurring: async () => Promise.reject(new Error()),
    related: async () => Promise.reject(new Error()),
    tensors: async () => null,
  tensor: async () => Promise.reject(new Error('not asked')),
  tensorGraph: async () => Promise.reject(new Error('not asked')),
  tensorLine: async () => Promise.reject(new Error('not asked')),
};
vi.mock('../src/api/client', () => ({page: null, answers: server, chartAnswers: server}));

const [shown, choices] = await Promise.all([import('../src/view/state/shown'), import('../src/view/state/choices')]);
shown.startShowing();

const onShow = () => ({steps: shown.data.value?.steps, latest: shown.step.value, hasGraph: shown.graph.value !== null});
const ALL = {steps: [...Array(10).keys()], latest: 9, hasGraph: true};
const OF_ADAM = {steps: [0, 2, 4, 6, 8], latest: 8, hasGraph: true};

beforeEach(async () => {
  vi.useFakeTimers();
  updates.mockImplementation((model) => later(updatesOf(model)));
  [choices.run.value, choices.model.value, choices.optimizer.value] = ['r', 'm', null];
  void shown.model.value!.update(new AbortController().signal);
  await passing(3 * ANSWER_MS);
});

afterEach(() => {
  choices.run.value = null;
  vi.useRealTimers();
});

describe('the steps of one optimizer', () => {
  test('take the place of all steps when they have come', async () => {
    expect(onShow()).toEqual(ALL);
    choices.optimizer.value = 'Adam';
    await passing(ANSWER_MS / 2);
    expect(onShow()).toEqual(ALL);
    await passing(ANSWER_MS / 2);
    expect(onShow()).toEqual(OF_ADAM);
  });

  test('are not shown if the choice was changed meanwhile', async () => {
    choices.optimizer.value = 'Adam';
    await passing(ANSWER_MS / 2);
    choices.optimizer.value = 'Adam #2';
    await passing(ANSWER_MS / 2);
    choices.optimizer.value = null;
    await passing(3 * ANSWER_MS);
    expect(onShow()).toEqual(ALL);
  });

  test('are asked for again by the poll if the server does not answer', async () => {
    updates.mockRejectedValueOnce(new Error('Gone.'));
    choices.optimizer.value = 'Adam';
    await passing(1);
    expect([shown.model.value?.name.optimizer, onShow().steps]).toEqual(['Adam', undefined]);
    void shown.model.value!.update(new AbortController().signal);
    await passing(ANSWER_MS);
    expect(onShow()).toEqual(OF_ADAM);
  });
});
