import {signal} from '@preact/signals';
import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import type {History, SeriesHistory} from '../../src/api/types';
import {reached} from '../../src/history';
import {CloseUps, type Chosen} from '../../src/model/closeUps';

const MODEL = {run: 'r', model: 'm'};
const at = (frame: number): Chosen => ({model: MODEL, epoch: 0, frame});

/** Frames 0 to 2 are merged, frame 3 is alone. */
function merged(): SeriesHistory {
  const history = historyFrom([[1, 2, 3], null, null, [4]]);
  return {...history, unit: 4, last: Uint32Array.of(2, 3), merged: Uint32Array.of(3, 1)};
}

function setUp(frame: number) {
  const chosen = signal<Chosen | null>(at(frame));
  const history = signal<SeriesHistory | null>(merged());
  const fetchHistory = vi.fn(async (_: unknown, {series, from}: {series: number[]; from: number}): Promise<History> => {
    const alone = historyFrom(Array.from({length: from + 1}, (_, i) => (i === from ? [10 * from] : null)));
    return {epoch: 0, frames: from + 1, unit: 1, from, series: new Map(series.map((one) => [one, alone]))};
  });
  const closeUps = new CloseUps(chosen, fetchHistory);
  return {chosen, history, fetchHistory, closeUps, shown: closeUps.of(7, history)};
}

describe('a close-up', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('of a merged step is fetched when the step stays chosen, and shown in place of what is merged', async () => {
    const {closeUps, fetchHistory, history, shown} = setUp(1);
    closeUps.want(7, history);
    expect(shown.value).toBe(history.value);
    await vi.runAllTimersAsync();
    expect(fetchHistory.mock.calls.map(([, wanted]) => wanted)).toEqual([{series: [7], from: 1, to: 2}]);
    expect([...shown.value!.frame]).toEqual([1]);
  });

  test('is asked for once for all series, and for none that is shown step by step', async () => {
    const {closeUps, fetchHistory, history} = setUp(1);
    [7, 8, 8].forEach((series) => closeUps.want(series, history));
    closeUps.want(9, signal(historyFrom([[1], [2]])));
    await vi.runAllTimersAsync();
    expect(fetchHistory.mock.calls.map(([, wanted]) => wanted)).toEqual([{series: [7, 8], from: 1, to: 2}]);
  });

  test('is not asked for while one drags through the steps, nor of a step that is alone', async () => {
    const {chosen, closeUps, fetchHistory, history, shown} = setUp(0);
    closeUps.want(7, history);
    [1, 2, 1, 2].forEach((frame) => (chosen.value = at(frame)));
    await vi.runAllTimersAsync();
    chosen.value = at(3);
    await vi.runAllTimersAsync();
    expect(fetchHistory.mock.calls.map(([, {from}]) => from)).toEqual([2]);
    expect(shown.value).toBe(history.value);
  });

  test('of the latest step stays until that of the next one has come, and not once the next one is alone', async () => {
    const latestAt = (frame: number): Chosen => ({...at(frame), isLatest: true});
    const {chosen, closeUps, history, shown} = setUp(1);
    chosen.value = latestAt(1);
    closeUps.want(7, history);
    await vi.runAllTimersAsync();
    const before = shown.value!;
    chosen.value = latestAt(2);
    expect(shown.value).toBe(before);
    expect(reached(before, 2)).toBe(1);
    await vi.runAllTimersAsync();
    expect([...shown.value!.frame]).toEqual([2]);
    chosen.value = latestAt(3);
    expect(shown.value).toBe(history.value);
  });

  test('of an earlier step does not stay when another one is chosen', async () => {
    const {chosen, closeUps, history, shown} = setUp(1);
    closeUps.want(7, history);
    await vi.runAllTimersAsync();
    chosen.value = at(2);
    expect(shown.value).toBe(history.value);
  });

  test('that cannot be had leaves what is merged on show', async () => {
    const {closeUps, fetchHistory, history, shown} = setUp(1);
    fetchHistory.mockRejectedValue(new Error('The server does not answer.'));
    closeUps.want(7, history)();
    closeUps.want(7, history);
    await vi.runAllTimersAsync();
    expect(shown.value).toBe(history.value);
  });
});
