import {signal} from '@preact/signals';
import {beforeEach, describe, expect, test, vi} from 'vitest';
import type {Answers, ModelName} from '../src/api/answers';
import type {Layout, ModuleGraph, StepStatistics, Updates} from '../src/api/types';
import {Model} from '../src/model/model';
import {layoutProblem, scene, startScene} from '../src/view/pane/scene';
import * as shown from '../src/view/state/shown';
import {GRAPH} from './fixtures';

const ANSWER_MS = 300;

const later = <T>(answer: T): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ANSWER_MS));
const passing = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const failing = (): Promise<never> => Promise.reject(new Error('Gone.'));

/** What the server has of every run: the steps of its frames, of which the sixth has another graph. */
let recorded: {epoch: number; steps: number[]};

function updatesOf({run, model}: ModelName): Updates {
  const {epoch, steps} = recorded;
  const graphIds = steps.map((_, i) => (i === 5 ? 1 : 0));
  const graphs = (steps.length === 0 ? [] : [0, 1]).map((graph) => ({graph, first_step: 0, revision: 0}));
  const frames = {first: 0, step: steps, time: steps, clock: steps, graph: graphIds, kind: steps.map(() => null), passes: steps.map((): [number, number] => [0, 0])};
  const nothing = {session: null, kinds: [], optimizers: [], series: {first: 0, items: []}, finished: null, warnings: [], more: false};
  return {run, model, epoch, reset: true, frames, graphs, ...nothing};
}

/** A graph names its run in the model's class. Run `B` has one node more than the others. */
function graphOf({run}: ModelName, graph: number): ModuleGraph {
  const [model, ...others] = GRAPH.modules;
  const more = run === 'B' ? [GRAPH.nodes[0]!] : [];
  return {...GRAPH, graph, modules: [{...model!, class_name: run}, ...others], nodes: [...GRAPH.nodes, ...more]};
}

function layoutOf({run}: ModelName): Layout {
  const nodes = GRAPH.nodes.length;
  const last = {node: run === 'B' ? nodes : nodes - 1, x: 0, y: 0, width: 1, height: 1};
  return {width: 1, height: 1, approximate: null, nodes: [last], edges: []};
}

function statisticsOf(step: number): StepStatistics {
  return {epoch: recorded.epoch, step, series: new Uint32Array(0), statistics: new Float32Array(0)};
}

const server = {
  updates: vi.fn<Answers['updates']>(),
  graph: vi.fn<Answers['graph']>(),
  layout: vi.fn<Answers['layout']>(),
  frame: vi.fn<Answers['frame']>(),
};

function answering(): void {
  server.updates.mockImplementation(async (model) => updatesOf(model));
  server.graph.mockImplementation((model, graph) => later(graphOf(model, graph)));
  server.layout.mockImplementation((model) => later(layoutOf(model)));
  server.frame.mockImplementation((_, step) => later(statisticsOf(step)));
}

const answers: Answers = {...server, runs: failing, history: failing, nonfinite: failing, findings: failing, scalars: async () => null, xray: async () => null, compare: failing,
    changes: async () => Promise.reject(new Error()),
    calls: async () => Promise.reject(new Error()),
    cooccurring: async () => Promise.reject(new Error()),
    related: async () => Promise.reject(new Error()),
    tensors: async () => null, tensor: failing, tensorLine: failing, tensorGraph: failing, explanation: failing};
const step = signal<number | null>(null);
const graph = signal<number | null>(null);
const wishes = {step, graph, mostBins: signal(1024)};
const opened: Model[] = [];

function open(run: string): Model {
  const model = new Model({run, model: 'm'}, wishes, answers);
  opened.push(model);
  return model;
}

/** The server has so many frames, and the model has heard of it. */
async function grow(model: Model, count: number, epoch = recorded.epoch): Promise<void> {
  recorded = {epoch, steps: Array.from({length: count}, (_, i) => i)};
  await model.update(new AbortController().signal);
}

const onShow = () => ({
  graph: shown.graph.value?.graph,
  statistics: shown.statistics.value?.step,
  run: scene.value?.graph.modules[0]?.class_name,
});

let epoch = 0;

startScene();

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  answering();
  epoch += 1; // so that no layout of the test before is known
  recorded = {epoch, steps: []};
  [step.value, graph.value] = [null, null];
  shown.model.value = open('A');
  return () => {
    opened.splice(0).forEach((model) => model.close());
    vi.useRealTimers();
  };
});

/** Run A at step 4, all of it on show. */
async function atStepFour(): Promise<Model> {
  const model = shown.model.value!;
  await grow(model, 6);
  step.value = 4;
  await passing(3 * ANSWER_MS);
  return model;
}

describe('what is on show', () => {
  test('is what was gone back to, not what was asked for in between', async () => {
    await atStepFour();
    step.value = 5;
    await passing(ANSWER_MS / 2);
    step.value = 4;
    await passing(3 * ANSWER_MS);
    expect(onShow()).toEqual({graph: 0, statistics: 4, run: 'A'});
  });

  test('is never the graph of the run that was left', async () => {
    const before = await atStepFour();
    graph.value = 1;
    await passing(ANSWER_MS / 2);
    shown.model.value = open('B');
    before.close();
    await passing(3 * ANSWER_MS);
    expect(onShow()).toEqual({graph: undefined, statistics: undefined, run: undefined});
  });

  test('is no drawing of nodes that the graph does not have yet', async () => {
    const model = await atStepFour();
    const before = scene.value;
    const newer = {...before!.layout, nodes: [{...before!.layout.nodes[0]!, node: GRAPH.nodes.length}]};
    server.layout.mockResolvedValueOnce(newer);
    await grow(model, 6, (epoch += 1));
    await passing(1);
    expect(scene.value).toBe(before);
    await passing(3 * ANSWER_MS);
    expect(scene.value?.key).toContain(`${epoch}`);
  });

  test('comes though news come faster than answers', async () => {
    const model = shown.model.value!;
    for (let count = 6; count < 20; count++) {
      await grow(model, count);
      await passing(ANSWER_MS / 3);
    }
    expect(onShow()).toMatchObject({graph: 0, run: 'A'});
    expect(onShow().statistics).toBeGreaterThan(10);
    await passing(3 * ANSWER_MS);
    expect(onShow().statistics).toBe(18);
    expect([server.graph, server.layout].map(({mock}) => mock.calls.length)).toEqual([1, 1]);
  });

  test('is nothing of a record in whose place another one has begun', async () => {
    const model = open('A');
    await grow(model, 3);
    await passing(ANSWER_MS);
    expect([model.graph.value?.graph, model.statistics.value?.step]).toEqual([0, 2]);
    await grow(model, 0, epoch + 1);
    expect([model.graph.value, model.statistics.value]).toEqual([null, null]);
    await grow(model, 3, epoch + 1);
    expect(model.statistics.value).toBeNull();
  });

  test('is drawn once', async () => {
    const model = await atStepFour();
    const before = scene.value;
    await grow(model, 7);
    expect(scene.value).toBe(before);
  });
});

describe('a failure', () => {
  test.each([
    ['graph', server.graph, () => shown.model.value!.problem],
    ['layout', server.layout, () => layoutProblem],
    ['statistics', server.frame, () => shown.model.value!.problem],
  ] as const)('of the %s is told, and the request repeated by one timer', async (_, request, problem) => {
    const model = shown.model.value!;
    vi.mocked(request as Answers['graph']).mockImplementation(failing);
    step.value = 4;
    for (let count = 6; count < 14; count++) {
      await grow(model, count);
      await passing(ANSWER_MS);
    }
    expect(problem().value).toMatch(/could not be fetched: Gone\. Trying again\.$/);
    request.mockClear();
    await passing(4100);
    expect(request).toHaveBeenCalledTimes(2);
    answering();
    await passing(4000);
    expect(problem().value).toBeNull();
    expect(onShow()).toEqual({graph: 0, statistics: 4, run: 'A'});
  });
});

describe('the graph', () => {
  test.each([
    ['the usual one of the latest frames', {}, {automatic: 1, shown: 1}],
    ['that of the chosen step', {chosen: 0}, {automatic: 0, shown: 0}],
    ['the chosen one, which does not change what it would be', {chosen: 0, choice: 2}, {automatic: 0, shown: 2}],
    ['the automatic one when the chosen one is not known', {choice: 7}, {automatic: 1, shown: 1}],
  ])('on show is %s', async (_, {chosen = null, choice = null}: {chosen?: number | null; choice?: number | null}, expected) => {
    const model = shown.model.value!;
    recorded = {epoch, steps: [0, 1, 2]};
    const graphs = [0, 1, 2].map((id) => ({graph: id, first_step: 10 * id, revision: 0}));
    const updates = updatesOf(model.name);
    server.updates.mockResolvedValue({...updates, graphs, frames: {...updates.frames, graph: [0, 1, 1]}});
    [step.value, graph.value] = [chosen, choice];
    await model.update(new AbortController().signal);
    expect({automatic: model.automaticGraph.value?.graph, shown: model.graphInfo.value?.graph}).toEqual(expected);
  });
});

describe('two models side by side', () => {
  test.each([
    [null, {often: 40, seldom: 30}],
    [25, {often: 25, seldom: 20}],
    [1000, {often: 40, seldom: 30}],
    [-1, {often: 5, seldom: 10}],
  ])('at step %s each show the one that they have recorded last before', async (chosen, expected) => {
    const [often, seldom] = [open('often'), open('seldom')];
    recorded = {epoch, steps: [5, 10, 25, 40]};
    await often.update(new AbortController().signal);
    recorded = {epoch, steps: [10, 20, 30]};
    await seldom.update(new AbortController().signal);
    step.value = chosen;
    await passing(3 * ANSWER_MS);
    expect({often: often.step.value, seldom: seldom.step.value}).toEqual(expected);
    expect({often: often.statistics.value?.step, seldom: seldom.statistics.value?.step}).toEqual(expected);
  });

  test('have data, graphs and requests of their own', async () => {
    const [one, other] = [open('A'), open('B')];
    await grow(one, 3);
    await passing(3 * ANSWER_MS);
    expect([one.data.value?.steps.length, other.data.value]).toEqual([3, null]);
    await grow(other, 5);
    one.close();
    await passing(3 * ANSWER_MS);
    expect([one, other].map((model) => model.graph.value?.modules[0]?.class_name)).toEqual(['A', 'B']);
    expect([one, other].map((model) => model.data.value?.steps.length)).toEqual([3, 5]);
  });
});

test('a closed model asks for nothing more', async () => {
  const model = await atStepFour();
  model.close();
  vi.clearAllMocks();
  step.value = 2;
  await grow(model, 9);
  await passing(10 * ANSWER_MS);
  expect([server.graph, server.frame].map(({mock}) => mock.calls.length)).toEqual([0, 0]);
});
