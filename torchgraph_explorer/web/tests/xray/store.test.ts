import {signal} from '@preact/signals';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import type {WantedXray, XrayAnswer} from '../../src/api/xray';
import type {Model} from '../../src/model/model';

const xray = vi.fn<(name: unknown, wanted: WantedXray) => Promise<XrayAnswer | null>>();
vi.mock('../../src/api/client', () => ({page: null, answers: {xray}, chartAnswers: {xray}, precedence: {}}));

const store = await import('../../src/view/xray/store');

/** Of so many steps in columns of `unit`; a stretch of them in columns of one step. */
function answer(steps: number, unit: number, {from, to}: {from: number | null; to: number | null}, more: Partial<XrayAnswer> = {}): XrayAnswer {
  const [first, stop, width] = from === null ? [0, steps, unit] : [from, Math.min(steps, (to ?? steps) + 1), 1];
  const starts = Array.from({length: Math.ceil((stop - first) / width)}, (_, i) => first + i * width);
  const facts = {version: '', is_complete: true, statistic: 'std', unit: width, modules: [''], statistics: [], available: ['std']};
  return {...facts, first: Float64Array.from(starts), last: Float64Array.from(starts, (one) => Math.min(stop, one + width) - 1), codes: new Uint16Array(starts.length), ...more} as XrayAnswer;
}

const data = signal({epoch: 0, steps: Array.from({length: 100}), graphs: []});
const MODEL = {name: {run: 'r', model: 'm'}, data} as unknown as Model;
let stop = (): void => undefined;

beforeEach(() => {
  vi.useFakeTimers();
  xray.mockReset().mockImplementation(async (_, wanted) => answer(100, 4, wanted));
  stop = store.follow(MODEL);
});

afterEach(() => {
  stop();
  store.forget();
  vi.useRealTimers();
});

const columns = (): number | undefined => store.xray.value?.unit;

test('A stretch is asked for until all of its cells have come', async () => {
  await vi.advanceTimersByTimeAsync(10);
  expect(columns()).toBe(4);
  xray.mockImplementationOnce(async (_, wanted) => answer(100, 4, wanted, {is_complete: false}));
  store.domain.value = {from: 40, to: 60};
  await vi.advanceTimersByTimeAsync(1000);
  expect([columns(), store.xray.value?.is_complete, xray.mock.calls.length]).toEqual([1, true, 3]);
});

test('A stretch of the record before is not shown in place of the new one, whose picture is as fine', async () => {
  await vi.advanceTimersByTimeAsync(10);
  store.domain.value = {from: 5, to: 10};
  await vi.advanceTimersByTimeAsync(1000);
  const old = store.xray.value;
  expect(old?.unit).toBe(1);
  xray.mockImplementation(async (_, wanted) => answer(20, 1, wanted));
  data.value = {...data.value, epoch: 1, steps: Array.from({length: 20})};
  await vi.advanceTimersByTimeAsync(10_000);
  expect([store.xray.value === old, store.xray.value?.first.length]).toEqual([false, 20]);
});

test('An answer that is asked for whole is asked for until it is', async () => {
  const ask = vi.fn(async () => answer(1, 1, {from: 0, to: 0}, {is_complete: ask.mock.calls.length > 2}));
  const found = store.completed(ask);
  await vi.advanceTimersByTimeAsync(1000);
  expect([(await found)?.is_complete, ask.mock.calls.length]).toEqual([true, 3]);
});
