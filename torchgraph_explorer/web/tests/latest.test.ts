import {afterEach, expect, test, vi} from 'vitest';
import {ApiError, UnreachableError} from '../src/api/errors';
import {latest} from '../src/api/latest';

const later = <T>(answer: T, ms: number): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ms));

afterEach(() => void vi.useRealTimers());

test('a late answer never wins', async () => {
  const place = latest();
  const got: string[] = [];
  const take = (answer: string): void => void got.push(answer);
  place.start(() => later('slow', 20), take, () => take('failed'));
  place.start(() => later('quick', 1), take, () => take('failed'));
  await later(null, 40);
  expect(got).toEqual(['quick']);
});

test('a new request aborts the one under way', () => {
  const place = latest();
  let first: AbortSignal | undefined;
  const nothing = (): void => {};
  place.start((signal) => ((first = signal), later(0, 1)), nothing, nothing);
  place.start(() => later(0, 1), nothing, nothing);
  expect(first?.aborted).toBe(true);
});

test('a failure is told, an abort is not', async () => {
  const failures: unknown[] = [];
  const fail = (cause: unknown): void => void failures.push(cause);
  latest().start(() => Promise.reject(new Error('gone')), () => {}, fail);
  latest().start(() => Promise.reject(new DOMException('', 'AbortError')), () => {}, fail);
  await later(null, 1);
  expect(failures).toEqual([new Error('gone')]);
});

test.each([
  ['a server that is gone is asked again', new UnreachableError('gone'), 2],
  ['a server at fault is asked again', new ApiError('busy', 503), 2],
  ['a question that cannot be answered is asked once', new ApiError('no such step', 404), 1],
])('where an answer is insisted on, %s', async (_name, cause, times) => {
  vi.useFakeTimers();
  const ask = vi.fn(() => Promise.reject(cause));
  const fail = vi.fn();
  latest().insist(ask, () => {}, fail);
  await vi.advanceTimersByTimeAsync(2500);
  expect([ask.mock.calls.length, fail.mock.calls.length]).toEqual([times, times]);
});

test('nothing is asked again after an abort', async () => {
  vi.useFakeTimers();
  const ask = vi.fn(() => Promise.reject(new UnreachableError('gone')));
  const place = latest();
  place.insist(ask, () => {}, () => {});
  await vi.advanceTimersByTimeAsync(100);
  place.abort();
  await vi.advanceTimersByTimeAsync(2500);
  expect(ask).toHaveBeenCalledTimes(1);
});
