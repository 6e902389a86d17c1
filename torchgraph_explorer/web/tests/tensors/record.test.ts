import {afterAll, expect, test, vi} from 'vitest';
import type {Answers} from '../../src/api/answers';
import {NOTHING_KEPT} from '../../src/api/tensors';
import type {KeptTensors} from '../../src/api/tensors';
import type {ModelData} from '../../src/model/data';
import type {Model} from '../../src/model/model';
import {signal} from '@preact/signals';

const ANSWER_MS = 300;

const tensors = vi.fn<Answers['tensors']>();
vi.mock('../../src/api/client', () => ({page: null, answers: {tensors}, chartAnswers: {tensors}}));

const [shown, store] = await Promise.all([import('../../src/view/state/shown'), import('../../src/view/tensors/store')]);
vi.stubGlobal('document', {hidden: false});
vi.useFakeTimers();
store.startFollowingKept();

const data = signal({epoch: 4, steps: [0, 1, 2], finished: null} as unknown as ModelData);

afterAll(() => void vi.useRealTimers());

function answering(kept: Partial<KeptTensors> | null): void {
  tensors.mockImplementation(() => new Promise((done) => setTimeout(() => done(kept && {...NOTHING_KEPT, ...kept}), ANSWER_MS)));
}

test('What is asked of a record that was written in the place of another one waits for its list of tensors', async () => {
  const onShow = (): unknown => [store.record.value, store.kept.value.steps];
  answering({version: '4.3', steps: [0, 1, 2]});
  shown.model.value = {name: {run: 'r', model: 'm'}, data} as unknown as Model;
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  expect(onShow()).toEqual([4, [0, 1, 2]]);
  answering({version: '5.1', steps: [0]});
  data.value = {...data.value, epoch: 5, steps: [0]};
  expect(onShow()).toEqual([4, [0, 1, 2]]);
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  expect(onShow()).toEqual([5, [0]]);
  answering(null); // the list was that of this record already
  data.value = {...data.value, epoch: 6};
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  expect(onShow()).toEqual([6, [0]]);
});

test('Tensors that are written some time after their frame are listed while the run is written', async () => {
  const last = (): unknown => tensors.mock.lastCall?.slice(1, 2);
  answering({version: '6.2', steps: [0, 1]});
  await vi.advanceTimersByTimeAsync(5000 + ANSWER_MS);
  expect([last(), store.kept.value.steps]).toEqual([['5.1'], [0, 1]]);
  data.value = {...data.value, finished: {time: 1, notes: []}} as unknown as ModelData;
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  const calls = tensors.mock.calls.length;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(tensors.mock.calls.length).toBe(calls);
});
