/** Ways to a place whose graph, or finding, has still to come: who has gone elsewhere meanwhile stays there. */

import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import type {Answers, ModelName} from '../src/api/answers';
import type {Updates} from '../src/api/types';
import {GRAPH} from './fixtures';

const ANSWER_MS = 300;
const KEY = 'block#0';

const never = (): Promise<never> => new Promise(() => undefined);
const later = <T>(answer: T): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ANSWER_MS));
const passing = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** Two steps, each with a graph of its own. */
function updatesOf({run, model}: ModelName): Updates {
  const step = [0, 1];
  const frames = {first: 0, step, time: step, clock: step, graph: step, kind: [null, null], passes: step.map((): [number, number] => [1, 1])};
  const graphs = step.map((one) => ({graph: one, first_step: one, revision: 0}));
  return {run, model, epoch: 0, reset: true, frames, kinds: [], optimizers: [], graphs, session: null, series: {first: 0, items: []}, finished: null, warnings: [], more: false} as unknown as Updates;
}

const FINDING = {kind: 'nan', module: 'block', call: 0, path: '', role: null, step: 0, last_step: 0, causes: [], severity: 'error', text: '', advice: ''};
const server = {
  updates: async (model: ModelName) => updatesOf(model),
  graph: (_: ModelName, graph: number) => later({...GRAPH, graph}),
  findings: () => later({version: '1', is_complete: true, findings: [FINDING], looked_at: null, recorded: 2}),
  ...{frame: never, runs: never, layout: never, history: never, nonfinite: never, tensors: never},
  scalars: async () => null,
} as unknown as Answers;
vi.mock('../src/api/client', () => ({page: null, answers: server, chartAnswers: server, precedence: {later: (ask: () => unknown) => ask()}}));

vi.stubGlobal('localStorage', {getItem: () => null, setItem: () => undefined});
vi.stubGlobal('window', {innerWidth: 1440, innerHeight: 900});
vi.stubGlobal('document', {documentElement: {dataset: {}}});

const [shown, choices, {goToPlace}, {startFindings}, {findingKey}, face] = await Promise.all([
  import('../src/view/state/shown'),
  import('../src/view/state/choices'),
  import('../src/view/goToPlace'),
  import('../src/view/findings/start'),
  import('../src/findings/names'),
  import('../src/view/xray/face'),
]);
shown.startShowing();

beforeEach(() => vi.useFakeTimers());

afterEach(() => {
  for (const one of [choices.run, choices.model, choices.step, choices.selected, choices.finding, choices.wanted]) one.value = null;
  [choices.pins.value, choices.view.value] = [[], 'graph'];
  vi.useRealTimers();
});

async function open(): Promise<void> {
  [choices.run.value, choices.model.value] = ['r', 'm'];
  void shown.model.value!.update(new AbortController().signal);
  await passing(1);
}

const pinned = (): string[] => choices.pins.value.map(({key}) => key);

const ELSEWHERE: [string, () => void, boolean][] = [
  ['nowhere else', () => undefined, true],
  ['to another step', () => void (choices.step.value = 0), false],
  ['to another page', () => void (choices.view.value = 'network'), false],
  ['to another node', () => void (choices.selected.value = 'block.fc#0'), false],
];

test.each(ELSEWHERE)('The graph of the step that one goes to comes late, and one has gone %s', async (_, go, isLed) => {
  await open();
  await passing(2 * ANSWER_MS);
  goToPlace(1, [KEY]);
  await passing(1);
  expect(pinned()).toEqual([]);
  go();
  const chosen = [choices.step.value, choices.view.value];
  await passing(2 * ANSWER_MS);
  expect([pinned(), choices.step.value, choices.view.value]).toEqual([isLed ? [KEY] : [], ...chosen]);
});

test.each(ELSEWHERE)('The finding of a link comes late, and one has gone %s', async (_, go, isLed) => {
  choices.finding.value = findingKey(FINDING as never);
  startFindings();
  await open();
  go();
  const chosen = [choices.step.value, choices.view.value];
  await passing(4 * ANSWER_MS);
  expect([pinned(), choices.step.value, choices.view.value]).toEqual(isLed ? [[KEY], 0, 'graph'] : [[], ...chosen]);
});

test('What goes along with something of one run is not asked of another one', () => {
  face.startForgetting();
  choices.run.value = 'r';
  face.target.value = {scalar: 'loss'};
  choices.step.value = 1;
  expect(face.target.value).toEqual({scalar: 'loss'});
  choices.run.value = 's';
  expect(face.target.value).toBeNull();
});
