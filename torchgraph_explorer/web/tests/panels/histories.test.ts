import {signal} from '@preact/signals';
import {describe, expect, test, vi} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import type {History} from '../../src/api/types';
import {Histories, type FetchHistory, type Source} from '../../src/model/histories';

const MODEL = {run: 'r', model: 'm'};
const settle = () => new Promise((resolve) => setTimeout(resolve));

/** A server that holds `frames` frames of one element each: the frame's own number. */
function server(state: {frames: number; epoch: number}) {
  return vi.fn<FetchHistory>(async (_, {series, from}) => {
    const all = Array.from({length: state.frames}, (_, frame) => (frame < from ? null : [frame]));
    return {epoch: state.epoch, frames: state.frames, unit: 1, from, series: new Map(series.map((one) => [one, historyFrom(all)]))};
  });
}

function setUp(frames = 3) {
  const state = {frames, epoch: 0};
  const source = signal<Source | null>({model: MODEL, epoch: 0, frames, most: 1024});
  const fetchHistory = server(state);
  return {state, source, fetchHistory, held: new Histories(source, fetchHistory)};
}

describe('histories', () => {
  test('wanted together are fetched in one request', async () => {
    const {held, fetchHistory} = setUp();
    [4, 7].forEach((series) => held.want(series));
    await settle();
    expect(fetchHistory.mock.calls.map(([, wanted]) => wanted)).toEqual([{series: [4, 7], from: 0, most: 1024, unit: 0}]);
    expect([...held.of(7).value!.frame]).toEqual([0, 1, 2]);
  });

  test('ask only for new frames when the model has grown', async () => {
    const {held, fetchHistory, source, state} = setUp();
    held.want(4);
    await settle();
    state.frames = 5;
    source.value = {...source.value!, frames: 5};
    await settle();
    expect(fetchHistory.mock.lastCall![1]).toEqual({series: [4], from: 3, most: 1024, unit: 1});
    const {frame, offsets, statistics} = held.of(4).value!;
    expect([[...frame], [...offsets], statistics.length]).toEqual([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], 60]);
  });

  test('are dropped and fetched anew when the epoch changes', async () => {
    const {held, fetchHistory, source, state} = setUp();
    held.want(4);
    await settle();
    Object.assign(state, {epoch: 1, frames: 2});
    source.value = {...source.value!, epoch: 1, frames: 2};
    expect(held.of(4).value).toBeNull();
    await settle();
    expect(fetchHistory.mock.lastCall![1].from).toBe(0);
    expect([...held.of(4).value!.frame]).toEqual([0, 1]);
  });

  test('that were dropped go on for who was given them before', async () => {
    const {held, source, state} = setUp();
    const [first, ...others] = Array.from({length: 66}, (_, series) => held.want(series));
    await settle();
    first!();
    const given = held.of(0); // as a chart that is made while another one goes
    others.forEach((end) => end());
    held.want(0);
    Object.assign(state, {frames: 4});
    source.value = {...source.value!, frames: 4};
    await settle();
    expect([...given.value!.frame]).toEqual([0, 1, 2, 3]);
  });

  test('that were dropped while their new frames were on their way are fetched from the beginning', async () => {
    const {held, source, state, fetchHistory} = setUp();
    const [end, ...others] = Array.from({length: 66}, (_, series) => held.want(series));
    await settle();
    Object.assign(state, {frames: 5});
    source.value = {...source.value!, frames: 5};
    [end!, ...others].forEach((one) => one());
    await settle();
    held.want(0);
    await settle();
    expect([[...held.of(0).value!.frame], fetchHistory.mock.lastCall![1].from]).toEqual([[0, 1, 2, 3, 4], 0]);
  });

  test('of another model that come late are ignored', async () => {
    const answers: ((answer: History) => void)[] = [];
    const source = signal<Source | null>({model: MODEL, epoch: 0, frames: 1, most: 1024});
    const held = new Histories(source, () => new Promise((resolve) => answers.push(resolve)));
    held.want(4);
    await settle();
    source.value = {model: {run: 'r', model: 'other'}, epoch: 0, frames: 1, most: 1024};
    await settle();
    const answer = (value: number) => ({epoch: 0, frames: 1, unit: 1, from: 0, series: new Map([[4, historyFrom([[value]])]])});
    answers[1]!(answer(2));
    await settle();
    answers[0]!(answer(1));
    await settle();
    expect(held.of(4).value!.statistics[6]).toBe(2);
  });

  test('that cannot be fetched say so, and are tried again', async () => {
    const {held, fetchHistory} = setUp();
    fetchHistory.mockRejectedValueOnce(new Error('The server does not answer.'));
    held.want(4);
    await settle();
    expect(held.problem.value).toBe('The histograms could not be fetched: The server does not answer.');
    held.retry();
    await settle();
    expect(held.problem.value).toBeNull();
    expect(held.of(4).value!.frame.length).toBe(3);
    held.close();
  });

  test('that nobody wants any more are not asked for', async () => {
    const {held, fetchHistory, source} = setUp();
    held.want(4)();
    source.value = {...source.value!, frames: 9};
    await settle();
    expect(fetchHistory).not.toHaveBeenCalled();
  });

  test('do not hammer a server that is behind its own poll', async () => {
    const {held, fetchHistory, source} = setUp();
    held.want(4);
    await settle();
    source.value = {...source.value!, frames: 9};
    await settle();
    expect(fetchHistory).toHaveBeenCalledTimes(2);
  });

  test('without any frame of a series are empty, not loading', async () => {
    const source = signal<Source | null>({model: MODEL, epoch: 0, frames: 2, most: 1024});
    const held = new Histories(source, async () => ({epoch: 0, frames: 2, unit: 1, from: 0, series: new Map()}));
    held.want(4);
    await settle();
    expect(held.of(4).value!.frame.length).toBe(0);
  });

  test('of very many frames are fetched a few at a time, so that the first ones show early', async () => {
    const {held, fetchHistory} = setUp(100_000);
    fetchHistory.mockImplementation(async (_, {from}) => ({epoch: 0, frames: 100_000, unit: 128, from, series: new Map()}));
    [1, 2, 3].forEach((series) => held.want(series));
    await settle();
    expect(fetchHistory.mock.calls.map(([, wanted]) => wanted.series)).toEqual([[1, 2], [3]]);
  });

  test('that come in several answers show when they are whole, one after the other', async () => {
    const {held, fetchHistory} = setUp(100_000);
    const seen: unknown[] = [];
    fetchHistory.mockImplementation(async (_, {series, from}) => {
      seen.push([series, from, held.of(1).peek()?.frame.length ?? null]);
      const frames = Math.min(from + 40_000, 100_000);
      const one = historyFrom([...Array.from({length: from / 1000}, () => null), [from]]);
      const shifted = {...one, unit: 128, frame: Uint32Array.of(from)};
      return {epoch: 0, frames, unit: 128, from, series: new Map(series.map((id) => [id, shifted]))};
    });
    [1, 2, 3].forEach((series) => held.want(series));
    await settle();
    expect(seen).toEqual([
      [[1, 2], 0, null],
      [[1, 2], 40_000, null],
      [[1, 2], 80_000, null],
      [[3], 0, 3],
      [[3], 40_000, 3],
      [[3], 80_000, 3],
    ]);
    expect([...held.of(3).value!.frame]).toEqual([0, 40_000, 80_000]);
  });

  test('that a server which is behind its own poll cannot tell whole are shown as far as they go', async () => {
    const {held, source} = setUp(3);
    source.value = {...source.value!, frames: 9};
    held.want(4);
    await settle();
    expect(held.of(4).value!.frame.length).toBe(3);
  });

  test('in bins go on with the last bin, which has grown', async () => {
    const {held, fetchHistory, source} = setUp(6);
    const bins = (values: number[][], from: number) => {
      const history = {...historyFrom([null, null, null, null, ...values].slice(from === 0 ? 4 : 0)), unit: 4};
      return {epoch: 0, frames: 8, unit: 4, from, series: new Map([[4, history]])};
    };
    fetchHistory.mockResolvedValueOnce({...bins([[1], [2], [3], [4], [5]], 0), frames: 6});
    fetchHistory.mockResolvedValueOnce(bins([[6, 6], [7]], 4));
    held.want(4);
    await settle();
    source.value = {...source.value!, frames: 8};
    await settle();
    expect(fetchHistory.mock.lastCall![1]).toEqual({series: [4], from: 6, most: 1024, unit: 4});
    const {frame, counts, offsets, unit} = held.of(4).value!;
    expect([[...frame], [...counts], [...offsets], unit]).toEqual([[0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 2, 1], [0, 1, 2, 3, 4, 5, 6], 4]);
  });

  test('in bins are fetched anew when there is room for finer ones, and stay on show meanwhile', async () => {
    const {held, fetchHistory, source} = setUp(6);
    const answer = {epoch: 0, frames: 6, unit: 4, from: 0, series: new Map([[4, {...historyFrom([[1]]), unit: 4}]])};
    fetchHistory.mockResolvedValue(answer);
    held.want(4);
    await settle();
    fetchHistory.mockResolvedValue({...answer, unit: 2, series: new Map([[4, {...historyFrom([[1], [2]]), unit: 2}]])});
    source.value = {...source.value!, most: 2048};
    expect(held.of(4).value!.unit).toBe(4);
    await settle();
    expect(fetchHistory.mock.lastCall![1]).toEqual({series: [4], from: 0, most: 2048, unit: 0});
    expect([held.of(4).value!.unit, ...held.of(4).value!.frame]).toEqual([2, 0, 1]);
  });
});
