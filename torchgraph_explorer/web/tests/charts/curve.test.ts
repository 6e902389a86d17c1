import {describe, expect, test} from 'vitest';
import {ofSteps} from '../../src/api/scalars';
import type {ScalarValues} from '../../src/api/types';
import {curvePaths, curvePoints, curveScale, entriesAt, mergedEntry, wholeScale} from '../../src/charts/curve';
import {exactNumber} from '../../src/charts/format';
import {interpolated} from '../../src/charts/interpolate';
import {scalarGroups} from '../../src/charts/scalarGroups';
import {elapsedText, timeAxis, timeTicks} from '../../src/charts/timeAxis';
import {placing} from '../../src/charts/timePlaces';

const BOX = {width: 100, height: 10, left: 0, right: 10};

function valued(values: number[]): ScalarValues {
  const steps = Float64Array.from(values, (_, step) => step);
  return ofSteps(steps, steps.map((step) => 1000 + step), Float64Array.from(values));
}

/** One bin of steps 0 to 9. */
const BIN: ScalarValues = {
  ...{step: Float64Array.of(0), time: Float64Array.of(1000), value: Float64Array.of(5), last: Float64Array.of(9)},
  ...{count: Uint32Array.of(10), bad: Uint32Array.of(1), low: Float64Array.of(0), high: Float64Array.of(10)},
};

const bySteps = (step: number): number => step;

function pathsOf(values: ScalarValues, kind: 'linear' | 'log' = 'linear') {
  return curvePaths(values, curvePoints(values, bySteps), curveScale(values, kind)!, BOX);
}

describe('a curve', () => {
  test('goes through all values', () => {
    expect(pathsOf(valued([0, 10, 5])).line).toBe('M0 10L10 0L20 5');
  });

  test.each([
    ['NaN', NaN],
    ['infinity', Infinity],
  ])('has a gap and a mark at %s', (_, odd) => {
    expect(pathsOf(valued([0, 10, odd, 10, 0]))).toMatchObject({line: 'M0 10L10 0M30 0L40 10', bad: [20]});
  });

  test('shows a value between two gaps as a dot', () => {
    expect(pathsOf(valued([0, NaN, 10, NaN])).dots).toEqual([[0, 10], [20, 0]]);
  });

  test('has what merged steps are between, and marks those with NaN', () => {
    expect(pathsOf(BIN)).toMatchObject({dots: [[45, 5]], range: 'M45 0V10', bad: [45]});
  });

  test('on a logarithmic scale leaves out what is not above zero', () => {
    expect(pathsOf(valued([1, 100, 0, -5, 10, 1]), 'log').line).toBe('M0 10L10 0M40 5L50 10');
  });
});

describe('the scale of a curve', () => {
  test.each([
    ['no values', [], 'linear'],
    ['nothing finite', [NaN, Infinity], 'linear'],
    ['nothing above zero', [-1, 0], 'log'],
  ] as const)('is none for %s', (_, values, kind) => {
    expect(curveScale(valued([...values]), kind)).toBeNull();
  });

  test('of a constant has it in the middle', () => {
    expect(curveScale(valued([3, 3]), 'linear')!.position(3)).toBeCloseTo(0.5);
    expect(curveScale(valued([3, 3]), 'log')!.position(3)).toBeCloseTo(0.5);
  });

  test.each([
    [0, -1, 1],
    [1, 0.95, 1.05],
    [-1e-38, -1.05e-38, -9.5e-39],
  ])('of a constant %d has room by its size, and of zero up to one', (value, low, high) => {
    const scale = curveScale(valued([value, value]), 'linear')!;
    expect(scale.low / low).toBeCloseTo(1);
    expect(scale.high / high).toBeCloseTo(1);
  });

  test('may leave the largest values out', () => {
    expect(curveScale(valued([0, 1, 2, 3, 99]), 'linear', 0.97)).toMatchObject({low: 0, high: 3});
    expect(curveScale(valued([7]), 'linear', 0.97)!.position(7)).toBeCloseTo(0.5);
  });

  test.each([
    ['is linear where values are alike', [1, 2, 3, 4], 'linear', 4],
    ['is logarithmic where one would press the others flat', [...Array(200).fill(0).map((_, i) => 1 + i / 10), 4094], 'log', 4094],
    ['stays linear where some are below 0', [-1, ...Array(200).fill(1), 4094], 'linear', 4094],
  ] as const)('of all values %s', (_, values, kind, high) => {
    const scale = wholeScale(valued([...values]), 'linear')!;
    expect(scale.kind).toBe(kind);
    expect(scale.high).toBeCloseTo(high);
  });

  test('holds the largest numbers there are', () => {
    const scale = curveScale(valued([-1.7e308, 1.7e308]), 'linear')!;
    expect([-1.7e308, 0, 1.7e308].map((value) => scale.position(value))).toEqual([0, 0.5, 1]);
  });
});

describe('what is under the pointer', () => {
  const points = curvePoints(valued([5, 5, 5]), bySteps);
  test.each([
    [-3, [0]],
    [0.4, [0]],
    [0.6, [1]],
    [1.7, [2]],
    [99, [2]],
  ])('at %d is entry %j', (place, entries) => expect(entriesAt(points, place, 0.1)).toEqual(entries));

  test('are all entries of a pixel', () => expect(entriesAt(points, 1, 1)).toEqual([0, 1, 2]));
  test('is nothing without entries', () => expect(entriesAt([], 3, 1)).toEqual([]));

  test('has the mean, the extremes and the NaN of all', () => {
    const {value, low, high, count, bad, last} = mergedEntry(valued([1, NaN, 3, 8]), [0, 1, 2]);
    expect([value[0], low[0], high[0], count[0], bad[0], last[0]]).toEqual([2, 1, 3, 3, 1, 2]);
  });

  test('has no mean where nothing is finite', () => {
    const {value, low} = mergedEntry(valued([Infinity, NaN]), [0, 1]);
    expect([value[0], low[0]]).toEqual([NaN, NaN]);
  });

  test('is a value as it is where there is one', () => {
    expect(mergedEntry(valued([1, -Infinity]), [1]).value[0]).toBe(-Infinity);
  });
});

describe('a place on the time axis', () => {
  const frames = {steps: [0, 10, 20], times: [100, 110, 140], clock: [0, null, 4], start: 100};
  const tokens = {steps: [0, 20], values: [0, 1000]};
  test.each([
    ['step', 5, 5],
    ['wall', 5, 123],
    ['elapsed', 5, 23],
    ['clock', 5, 1],
    ['clock', 25, NaN],
    ['scalar:tokens', 5, 250],
    ['scalar:tokens', 21, NaN],
  ] as const)('by %s of step %i is %d', (kind, step, place) => {
    expect(placing(kind, frames, tokens)(step, 123)).toBe(place);
  });

  test('by a scalar that is not known is the step', () => expect(placing('scalar:lost', frames, null)(7, 0)).toBe(7));
});

describe('an axis of a scalar', () => {
  const frames = {steps: [0, 10, 20], times: [100, 110, 140], clock: [null, null, null], start: 100};
  test('has the frames at its values', () => {
    expect([...timeAxis('scalar:tokens', {...frames, scalar: [0, 500, NaN]}).values]).toEqual([0, 500, NaN]);
  });
  test('falls back to steps when nothing is known of it', () => {
    expect(timeAxis('scalar:tokens', {...frames, scalar: [NaN, NaN, NaN]}).kind).toBe('step');
    expect(timeAxis('scalar:tokens', frames).kind).toBe('step');
  });
  test('of the time since the start begins at zero and has round ticks', () => {
    const axis = timeAxis('elapsed', frames);
    expect([...axis.values]).toEqual([0, 10, 40]);
    expect(timeTicks(axis, 4).map(({label}) => label)).toEqual(['0 s', '20 s', '40 s']);
  });
});

test.each([
  [2.5, '2.5 s'],
  [90, '1:30'],
  [3600, '1:00:00'],
  [45_296, '12:34:56'],
])('%d seconds are %s', (seconds, text) => expect(elapsedText(seconds)).toBe(text));

test.each([
  [1, 10],
  [1.5, 15],
  [3, 30],
  [0.9, NaN],
  [3.1, NaN],
  [NaN, NaN],
])('between points, %d is %d', (x, y) => expect(interpolated([1, 2, 3], [10, 20, 30], x)).toBe(y));

test.each([
  [Math.LN2, '0.6931471805599453'],
  [-1e-7, '−1e−7'],
  [1e21, '1e21'],
  [NaN, 'NaN'],
  [-Infinity, '−∞'],
])('all digits of %d are %s', (value, text) => expect(exactNumber(value)).toBe(text));

test('scalars are grouped by prefix, those with a loss first, then those without a prefix', () => {
  expect(scalarGroups(['train/acc', 'lr', 'eval/a/b', 'train/loss', '/odd'])).toEqual([
    {prefix: 'train', names: ['train/loss', 'train/acc']},
    {prefix: '', names: ['lr', '/odd']},
    {prefix: 'eval', names: ['eval/a/b']},
  ]);
  expect(scalarGroups(['train/acc', 'lr', 'loss']).map(({prefix}) => prefix)).toEqual(['', 'train']);
});
