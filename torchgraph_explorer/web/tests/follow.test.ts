import {beforeEach, describe, expect, test, vi} from 'vitest';
import {fetchFrame, fetchGraph, fetchLayout} from '../src/api/client';
import type {Model} from '../src/api/client';
import type {FrameStatistics, Layout, ModuleGraph} from '../src/api/types';
import {layoutProblem, scene, startScene} from '../src/view/pane/scene';
import {frameStatistics, requestProblem, startFollowing} from '../src/model/model';
import {openModel} from '../src/view/state/live';
import * as store from '../src/view/state/choices';
import {GRAPH} from './fixtures';

vi.mock('../src/api/client', async (original) => ({
  ...(await original<object>()),
  fetchFrame: vi.fn(),
  fetchGraph: vi.fn(),
  fetchLayout: vi.fn(),
}));

const ANSWER_MS = 300;

const later = <T>(answer: T): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ANSWER_MS));
const passing = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const failing = (): Promise<never> => Promise.reject(new Error('Gone.'));

/** A server whose graphs name their run in the model's class; run `B` has one node, which `A` has not. */
function answering(): void {
  const nodes = GRAPH.nodes.length;
  const graphOf = ({run}: Model, graph: number): ModuleGraph => {
    const [model, ...others] = GRAPH.modules;
    const more = run === 'B' ? [GRAPH.nodes[0]!] : [];
    return {...GRAPH, graph, modules: [{...model!, class_name: run}, ...others], nodes: [...GRAPH.nodes, ...more]};
  };
  const layoutOf = ({run}: Model): Layout => {
    const last = {node: run === 'B' ? nodes : nodes - 1, x: 0, y: 0, width: 1, height: 1};
    return {width: 1, height: 1, approximate: null, nodes: [last], edges: []};
  };
  const statisticsOf = (frame: number): FrameStatistics => {
    return {epoch: 0, frame, step: frame, series: new Uint32Array(0), statistics: new Float32Array(0)};
  };
  vi.mocked(fetchGraph).mockImplementation((model, graph) => later(graphOf(model, graph)));
  vi.mocked(fetchLayout).mockImplementation((model) => later(layoutOf(model)));
  vi.mocked(fetchFrame).mockImplementation((_, frame) => later(statisticsOf(frame)));
}

/** Data of `count` frames; of the last one the graph is another. */
function frames(count: number, epoch: number): store.ModelData {
  const graphIds = Array.from({length: count}, (_, i) => (i === 5 ? 1 : 0));
  const graphs = [0, 1].map((graph) => ({graph, first_step: 0, revision: 0}));
  const nothing = {session: null, series: [], finished: null, warnings: []};
  return {epoch, steps: [...graphIds.keys()], times: graphIds, clock: graphIds, graphIds, graphs, ...nothing};
}

const shown = () => ({
  graph: store.graph.value?.graph,
  statistics: frameStatistics.value?.frame,
  run: scene.value?.graph.modules[0]?.class_name,
});

let epoch = 0;

startFollowing();
startScene();

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  answering();
  store.runs.value = ['A', 'B'].map((run) => ({run, models: ['m'], first_write: null, last_write: null, bytes: 0, error: null}));
  openModel('A', 'm');
  epoch += 1; // so that no layout of the test before is known
  return () => vi.useRealTimers();
});

/** Run A at frame 4, all of it on show. */
async function atFrameFour(): Promise<void> {
  store.data.value = frames(6, epoch);
  store.frame.value = 4;
  await passing(3 * ANSWER_MS);
}

describe('what is on show', () => {
  test('is what was gone back to, not what was asked for in between', async () => {
    await atFrameFour();
    store.frame.value = 5;
    await passing(ANSWER_MS / 2);
    store.frame.value = 4;
    await passing(3 * ANSWER_MS);
    expect(shown()).toEqual({graph: 0, statistics: 4, run: 'A'});
  });

  test('is never the graph of the run that was left', async () => {
    await atFrameFour();
    store.graphChoice.value = 1;
    await passing(ANSWER_MS / 2);
    openModel('B', null);
    await passing(3 * ANSWER_MS);
    expect(shown()).toEqual({graph: undefined, statistics: undefined, run: undefined});
  });

  test('is no drawing of nodes that the graph does not have yet', async () => {
    await atFrameFour();
    const before = scene.value;
    const newer = {...before!.layout, nodes: [{...before!.layout.nodes[0]!, node: GRAPH.nodes.length}]};
    vi.mocked(fetchLayout).mockResolvedValueOnce(newer);
    store.data.value = frames(6, (epoch += 1));
    await passing(1);
    expect(scene.value).toBe(before);
    await passing(3 * ANSWER_MS);
    expect(scene.value?.place).toContain(`${epoch}`);
  });

  test('comes though news come faster than answers', async () => {
    for (let count = 6; count < 20; count++) {
      store.data.value = frames(count, epoch);
      await passing(ANSWER_MS / 3);
    }
    expect(shown()).toMatchObject({graph: 0, run: 'A'});
    expect(shown().statistics).toBeGreaterThan(10);
    await passing(3 * ANSWER_MS);
    expect(shown().statistics).toBe(18);
    expect([vi.mocked(fetchGraph), vi.mocked(fetchLayout)].map(({mock}) => mock.calls.length)).toEqual([1, 1]);
  });

  test('is drawn once', async () => {
    await atFrameFour();
    const before = scene.value;
    store.data.value = frames(7, epoch);
    expect(scene.value).toBe(before);
  });
});

describe('a failure', () => {
  test.each([
    ['graph', fetchGraph, requestProblem],
    ['layout', fetchLayout, layoutProblem],
    ['statistics', fetchFrame, requestProblem],
  ] as const)('of the %s is told, and the request repeated by one timer', async (_, request, problem) => {
    vi.mocked(request).mockImplementation(failing);
    store.frame.value = 4;
    for (let count = 6; count < 14; count++) {
      store.data.value = frames(count, epoch);
      await passing(ANSWER_MS);
    }
    expect(problem.value).toMatch(/could not be fetched: Gone\. Trying again\.$/);
    vi.mocked(request).mockClear();
    await passing(4100);
    expect(request).toHaveBeenCalledTimes(2);
    answering();
    await passing(4000);
    expect(problem.value).toBeNull();
    expect(shown()).toEqual({graph: 0, statistics: 4, run: 'A'});
  });
});
