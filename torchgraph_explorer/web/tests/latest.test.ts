import {expect, test} from 'vitest';
import {latest} from '../src/api/latest';

const later = <T>(answer: T, ms: number): Promise<T> => new Promise((done) => setTimeout(() => done(answer), ms));

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
