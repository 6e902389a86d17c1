import {describe, expect, test, vi} from 'vitest';
import type {WantedScalars} from '../src/api/answers';
import {ApiError} from '../src/api/errors';
import {ofSteps} from '../src/api/scalars';
import type {ScalarNews} from '../src/api/types';
import {Scalars} from '../src/model/scalars';
import {barPlaces, frameNear, framesWithin, shareAt} from '../src/view/time/barPlaces';

const NAMES = ['loss', 'tokens'];

function news(version: string, from: number, steps: number[], wanted: number[]): ScalarNews {
  const step = Float64Array.from(steps);
  return {
    version,
    scalars: NAMES.map((name) => ({name, values: 3, is_axis: false})),
    notes: [],
    unit: 1,
    from,
    values: new Map(wanted.map((one) => [one, ofSteps(step, step, step.map((value) => value + 10 * one))])),
  };
}

function opened(...answers: (ScalarNews | null)[]) {
  const fetch = vi.fn<(wanted: WantedScalars) => Promise<ScalarNews | null>>();
  for (const answer of answers) fetch.mockResolvedValueOnce(answer);
  return {fetch, scalars: new Scalars(fetch)};
}

describe('scalars', () => {
  test('are known by name before any is shown', async () => {
    const {fetch, scalars} = opened(news('a', 0, [], []));
    await scalars.update();
    expect(fetch).toHaveBeenLastCalledWith({scalars: [], most: 1024}, undefined);
    expect(scalars.data.value!.scalars.map(({name}) => name)).toEqual(NAMES);
  });

  test('grow by what is new from the last known step on', async () => {
    const {fetch, scalars} = opened(news('a', 0, [], []), news('b', 0, [0, 1, 2], [1]), news('c', 2, [2, 3], [1]));
    scalars.want('tokens');
    await scalars.update();
    await scalars.update();
    await scalars.update();
    expect(fetch).toHaveBeenLastCalledWith({scalars: [1], most: 1024, known: {version: 'b', unit: 1, from: 2}}, undefined);
    expect([...scalars.data.value!.values.get(1)!.value]).toEqual([10, 11, 12, 13]);
    scalars.close();
  });

  test('are asked for from the beginning when another one is shown', async () => {
    const {fetch, scalars} = opened(news('a', 0, [], []), news('b', 0, [0, 1], [0]), news('b', 0, [0, 1], [0, 1]));
    scalars.want('loss');
    await scalars.update();
    await scalars.update();
    scalars.want('tokens');
    await scalars.update();
    expect(fetch).toHaveBeenLastCalledWith({scalars: [0, 1], most: 1024}, undefined);
    expect([...scalars.data.value!.values.keys()]).toEqual([0, 1]);
    scalars.close();
  });

  test('stay as they are when nothing is new', async () => {
    const {scalars} = opened(news('a', 0, [], []), null);
    await scalars.update();
    const before = scalars.data.value;
    await scalars.update();
    expect(scalars.data.value).toBe(before);
  });

  test('are no longer fetched when nothing shows them', async () => {
    const {fetch, scalars} = opened(news('a', 0, [], []), news('b', 0, [], []));
    scalars.want('loss')();
    await scalars.update();
    await scalars.update();
    expect(fetch.mock.lastCall![0].scalars).toEqual([]);
    scalars.close();
  });

  test('are asked for again that failed when they were shown, until they are closed', async () => {
    vi.useFakeTimers();
    const {fetch, scalars} = opened(news('a', 0, [], []));
    await scalars.update();
    fetch.mockRejectedValueOnce(new ApiError('Busy.', 503)).mockResolvedValueOnce(news('a', 0, [0, 1], [0]));
    scalars.want('loss');
    await vi.advanceTimersByTimeAsync(3000);
    expect([...scalars.data.value!.values.keys()]).toEqual([0]);
    fetch.mockRejectedValue(new ApiError('Busy.', 503));
    scalars.want('tokens');
    await vi.advanceTimersByTimeAsync(1);
    scalars.close();
    const calls = fetch.mock.calls.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(fetch).toHaveBeenCalledTimes(calls);
    vi.useRealTimers();
  });

  test('of an answer that another one has overtaken are dropped', async () => {
    const {scalars} = opened();
    let answer: (news: ScalarNews) => void = () => undefined;
    const late = new Scalars(vi.fn().mockReturnValueOnce(new Promise((done) => (answer = done))).mockResolvedValueOnce(news('new', 0, [], [])));
    const first = late.update();
    await late.update();
    answer(news('old', 0, [], []));
    await first;
    expect(late.data.value!.version).toBe('new');
    scalars.close();
  });
});

describe('the time bar', () => {
  test('has its frames where the axis has them', () => {
    expect([...barPlaces({values: Float64Array.of(0, 1, 4)}).shares]).toEqual([0, 0.25, 1]);
  });

  test('puts frames that are not on the axis between their neighbours', () => {
    expect([...barPlaces({values: Float64Array.of(NaN, 0, NaN, 4, NaN)}).shares]).toEqual([0, 0, 0.5, 1, 1]);
  });

  test('spreads frames evenly where the axis tells nothing apart', () => {
    expect([...barPlaces({values: Float64Array.of(3, 3, 3)}).shares]).toEqual([0, 0.5, 1]);
    expect([...barPlaces({values: Float64Array.of(7)}).shares]).toEqual([0]);
    expect([...barPlaces({values: Float64Array.of()}).shares]).toEqual([]);
  });

  test.each([
    [0.1, 0],
    [0.2, 1],
    [0.9, 3],
  ])('share %d is nearest to frame %i, the latest of several', (share, frame) => {
    expect(frameNear([0, 0.25, 1, 1], share)).toBe(frame);
  });

  test('knows where a position between two frames is', () => {
    expect([-0.5, 0.5, 1.5].map((at) => shareAt([0, 0.25, 1], at))).toEqual([-0.125, 0.125, 0.625]);
  });

  test('counts the frames that share a pixel', () => {
    expect(framesWithin([0, 0.001, 0.002, 0.5, 1], 1, 0.01)).toBe(1);
    expect(framesWithin([0, 0.5, 1], 1, 0.01)).toBe(0);
  });
});
