import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';

import {Precedence} from '../src/api/precedence';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A request that is answered when it is told to be. */
function request() {
  let answer = (): void => undefined;
  const ask = vi.fn(() => new Promise<void>((resolve) => (answer = resolve)));
  return {ask, answer: async () => (answer(), await vi.advanceTimersByTimeAsync(0))};
}

describe('what is asked of compared runs', () => {
  test('waits for the charts, and for those that an answer makes', async () => {
    const precedence = new Precedence();
    const [updates, history, graph] = [request(), request(), request()];
    void precedence.first(updates.ask);
    void precedence.later(graph.ask);
    await updates.answer();
    await vi.advanceTimersByTimeAsync(50);
    void precedence.first(history.ask);
    await vi.advanceTimersByTimeAsync(1000);
    expect(graph.ask).not.toHaveBeenCalled();
    await history.answer();
    await vi.advanceTimersByTimeAsync(300);
    expect(graph.ask).toHaveBeenCalledOnce();
  });

  test('does not wait where no chart was asked for lately', async () => {
    const {ask} = request();
    void new Precedence().later(ask);
    await vi.advanceTimersByTimeAsync(0);
    expect(ask).toHaveBeenCalledOnce();
  });

  test('waits for a few seconds at most, and for a chart that fails no longer than that', async () => {
    const precedence = new Precedence();
    const [slow, graph, other] = [request(), request(), request()];
    void precedence.first(slow.ask);
    void precedence.later(graph.ask);
    await vi.advanceTimersByTimeAsync(3000);
    expect(graph.ask).toHaveBeenCalledOnce();
    await slow.answer();
    await expect(precedence.first(() => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
    void precedence.later(other.ask);
    await vi.advanceTimersByTimeAsync(300);
    expect(other.ask).toHaveBeenCalledOnce();
  });
});
