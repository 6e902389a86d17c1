import {describe, expect, test} from 'vitest';

import {historyFrom, normal, randomFrom} from '../../gallery/samples';
import {axisExtent, fullExtent, usualExtent, robustExtent} from '../../src/charts/extent';
import {trimmed} from '../../src/histogram/trimmed';
import {boundsOf, histogramOf} from '../../src/history';

const ramp = Array.from({length: 1000}, (_, i) => i - 499.5);

describe('the robust extent', () => {
  test('leaves out the proportion that is farthest from the median', () => {
    const {low, high} = robustExtent(historyFrom([ramp, ramp]), 0.1)!;
    expect(low).toBeCloseTo(-450, -1.5);
    expect(high).toBeCloseTo(450, -1.5);
  });

  test('keeps the zeros of a ReLU and cuts its tail alone', () => {
    const elements = normal(randomFrom(1), 4000).map((value) => Math.max(0, value));
    const {low, high} = robustExtent(historyFrom([elements]), 0.1)!;
    expect(low).toBe(0);
    expect(high).toBeGreaterThan(1.1);
    expect(high).toBeLessThan(1.5); // the 90 % quantile of max(0, normal) is 1.28
  });

  test('is not squashed by one exploding frame among many', () => {
    const quiet = Array.from({length: 30}, () => ramp);
    const {low, high} = robustExtent(historyFrom([...quiet, ramp.map((value) => value * 1e30)]), 0.1)!;
    expect(Math.max(-low, high)).toBeLessThan(1000);
  });

  test('holds a series that drifts away', () => {
    const drift = Array.from({length: 30}, (_, frame) => ramp.map((value) => value + 1000 * frame));
    const {low, high} = robustExtent(historyFrom(drift), 0.1)!;
    expect([low < -400, high > 29_000]).toEqual([true, true]);
  });

  test('is the full one where nearly all elements are zero', () => {
    const dropped = Array.from({length: 1000}, (_, i) => (i % 20 === 0 ? 1 + i : 0));
    expect(robustExtent(historyFrom([dropped, dropped]), 0.1)).toEqual({low: 0, high: 981});
    expect(robustExtent(historyFrom([[0, 0], [0, 0]]), 0.1)).toEqual({low: 0, high: 0});
  });

  test('is the full one when nothing is to be left out', () => {
    expect(robustExtent(historyFrom([[-3, 5], [1, 70]]), 0)).toEqual({low: -3, high: 70});
  });

  test('of a constant is that constant', () => {
    expect(robustExtent(historyFrom([[3, 3], [3]]), 0.1)).toEqual({low: 3, high: 3});
  });

  test.each([['an empty', []], ['an all-NaN', [[NaN, NaN]]], ['an infinite', [[Infinity]]]])('of %s series is null', (_, frames) => {
    expect(robustExtent(historyFrom(frames), 0.1)).toBeNull();
    expect(fullExtent(historyFrom(frames))).toBeNull();
  });
});

test.each([
  {name: 'both sides alike', elements: ramp, reject: 0.5, bounds: {low: -250, high: 250}},
  {name: 'the far side alone', elements: [...Array(60).fill(0), ...Array.from({length: 40}, (_, i) => i)], reject: 0.2, bounds: {low: 0, high: 20}},
  {name: 'nothing of a spike that would go too far', elements: [...Array(95).fill(1), ...Array(5).fill(9)], reject: 0.01, bounds: {low: 1, high: 9}},
  {name: 'a spike that is small enough', elements: [...Array(95).fill(1), ...Array(5).fill(-9)], reject: 0.05, bounds: {low: 1, high: 1}},
])('trimming takes off $name', ({elements, reject, bounds}) => {
  const history = historyFrom([elements]);
  const {low, high} = trimmed(histogramOf(history, 0), boundsOf(history, 0), reject);
  expect(Math.abs(low - bounds.low)).toBeLessThan(0.1 * Math.max(1, bounds.high));
  expect(Math.abs(high - bounds.high)).toBeLessThan(0.1 * Math.max(1, bounds.high));
});

describe('an axis', () => {
  test.each([
    {extent: null, ends: {low: 0, high: 1}},
    {extent: {low: 3, high: 3}, ends: {low: 2.7, high: 3.3}},
    {extent: {low: 0, high: 0}, ends: {low: -1, high: 1}},
    {extent: {low: -1.6449, high: 1.6511}, ends: {low: -1.7, high: 1.7}},
    {extent: {low: 0, high: 1}, ends: {low: 0, high: 1}},
  ])('for $extent ends at $ends', ({extent, ends}) => {
    const {low, high} = axisExtent(extent);
    expect(low).toBeCloseTo(ends.low, 12);
    expect(high).toBeCloseTo(ends.high, 12);
  });
});

describe('the usual extent of a line', () => {
  test('holds every point when none is far out', () => {
    expect(usualExtent([1, 2, NaN, 4, 3], {reject: 0.1, room: 1})).toEqual({low: 1, high: 4});
  });

  test('lets a single outlier leave the picture', () => {
    expect(usualExtent([...Array.from({length: 100}, (_, i) => i), 1e9], {reject: 0.1, room: 1})!.high).toBeLessThan(200);
  });

  test('without a number is null', () => {
    expect(usualExtent([NaN], {reject: 0, room: 1})).toBeNull();
  });
});
