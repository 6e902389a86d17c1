import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import {runsOf} from '../../src/charts/draw/gaps';
import {aboutCount, axisNumber, axisNumberThat, clockNumber, clockNumbers, percent, stepNumbers} from '../../src/charts/format';
import {stripLayout} from '../../src/charts/layout';
import {parseStops, ramp, rgbOf} from '../../src/charts/ramp';
import {rebin} from '../../src/histogram/rebin';
import {rowGrid} from '../../src/charts/grid';
import {linearScale} from '../../src/charts/scale';
import {emptiness, sceneOf} from '../../src/charts/scene';
import {sliceBars} from '../../src/charts/slice';
import {timeAxis} from '../../src/charts/timeAxis';
import {rowAtHeight, tipFacts} from '../../src/charts/tipFacts';
import {CHART_DEFAULTS} from '../../src/charts/options';

describe('bars', () => {
  const grid = rowGrid(linearScale({low: -2, high: 2}), 4);
  const bars = (buckets: number[], counts: number[]) => sliceBars(rebin({buckets, counts}, {low: -9, high: 9}, grid), grid, 'linear');

  test('are as long as the longest that is not a spike of zeros', () => {
    expect(bars([0, 508], [90, 10])).toEqual([
      {row: 2, length: 1, count: 90, isCut: true},
      {row: 3, length: 1, count: 10, isCut: false},
    ]);
  });

  test('of zeros alone are not cut', () => {
    expect(bars([0], [7])).toEqual([{row: 2, length: 1, count: 7, isCut: false}]);
  });

  test('of an empty histogram are none', () => {
    expect(bars([], [])).toEqual([]);
  });
});

describe('a strip', () => {
  test.each([30, 64, 100, 300])('of %i rows has rows of whole pixels', (rows) => {
    expect(stripLayout(300, rows).plot.height % rows).toBe(0);
  });

  test('keeps its parts beside each other, within its width', () => {
    const {plot, slice, width} = stripLayout(210, 64);
    expect(plot.x + plot.width).toBeLessThan(slice.x);
    expect(slice.x + slice.width).toBeLessThanOrEqual(width);
  });

  const frames = {steps: [0, 1], times: [0, 1], clock: [null, null]};
  const scene = (elements: number[][], mode: 'heat' | 'bands' | 'line') =>
    sceneOf({history: historyFrom(elements), options: {...CHART_DEFAULTS, mode}, axis: timeAxis('step', frames), width: 300});

  test.each(['heat', 'bands', 'line'] as const)('in mode %s says why it is empty', (mode) => {
    expect(emptiness(scene([], mode))).toBe('nothing recorded');
    expect(emptiness(scene([[NaN]], mode))).toBe('all NaN');
    expect(emptiness(scene([[1]], mode))).toBeNull();
  });

  test('tells the bin under the pointer, and what is not finite', () => {
    const shown = scene([[0, 1, 1, 1, 2, NaN]], 'heat');
    const {plot} = shown.layout;
    const facts = Object.fromEntries(tipFacts(shown, 0, rowAtHeight(plot.y + plot.height / 2 - 1, plot, 64)));
    expect(facts).toMatchObject({'in it': '3', mean: '1', NaN: '1'});
    expect(tipFacts(shown, 1, null)).toEqual([['', 'nothing recorded at this step']]);
  });
});

describe('a colour ramp', () => {
  test('has even steps of lightness', () => {
    const table = ramp(parseStops('0.9 0.03 215, 0.5 0.15 250, 0.1 0.05 280'), 5);
    expect(table.length).toBe(20);
    const green = [1, 5, 9, 13, 17].map((at) => table[at]!);
    expect(green).toEqual([...green].sort((a, b) => b - a));
  });

  test.each([
    [[1, 0, 0], [255, 255, 255]],
    [[0, 0, 0], [0, 0, 0]],
    [[0.628, 0.2577, 29.23], [255, 0, 0]],
  ] as const)('%j is %j', (colour, rgb) => {
    rgbOf(colour).forEach((byte, i) => expect(Math.abs(byte - rgb[i]!)).toBeLessThanOrEqual(1));
  });
});

describe('texts', () => {
  test.each([
    [0, 1, '0'],
    [-1.5, 3, '−1.5'],
    [1001.9, 4, '1001.9'],
    [2.3e-9, 4.6e-9, '2.3e−9'],
    [1e-4, 2e-4, '1e−4'],
    [0.003, 3e-4, '0.003'],
    [0.00315, 3e-4, '0.00315'],
    [370000, 5e5, '3.7e5'],
  ])('%f on an axis of length %f is %s', (value, length, text) => {
    expect(axisNumber(value, length)).toBe(text);
  });

  test.each([
    [0.01017, 9e-4, '0.0102'],
    [-0.00919, 9e-4, '−0.009'],
    [0.0123, 0.05, '0.012'],
    [1e-9, 5, '0'],
  ])('%f on an axis of length %f is %s where six letters have room', (value, length, text) => {
    expect(axisNumberThat((one) => one.length <= 6, value, length)).toBe(text);
  });

  test.each([
    [0, '0'],
    [0.2, '< 1'],
    [12, '12'],
    [1234.5, '≈ 1,235'],
  ])('%f elements are %s', (count, text) => {
    expect(aboutCount(count)).toBe(text);
  });

  test.each([
    [1, 3, '33 %'],
    [9999, 10000, '> 99.9 %'],
    [3, 3, '100 %'],
    [0, 0, '–'],
  ])('%i of %i is %s', (part, whole, text) => {
    expect(percent(part, whole)).toBe(text);
  });

  test.each([
    [[0, 2500, 5000], ['0', '2,500', '5,000']],
    [[0, 50_000, 100_000], ['0', '50k', '100k']],
    [[1_000_000, 1_002_000, 1_004_000], ['1,000,000', '1,002,000', '1,004,000']],
    [[100_500, 101_000], ['100,500', '101,000']],
    [[1_002_000], ['1,002,000']],
    [[-200_000, 0, 200_000], ['−200,000', '0', '200,000']],
  ])('the steps %j of an axis are %j', (steps, texts) => {
    expect(stepNumbers(steps)).toEqual(texts);
  });

  test.each([
    [[0, 0.5, 1], ['0', '0.5', '1']],
    [[3, 3.002, 3.004], ['3', '3.002', '3.004']],
    [[12_340, 12_345], ['12,340', '12,345']],
    [[1e6, 2e6], ['1.0e6', '2.0e6']],
    [[-0.0015, -0.001], ['−1.5e−3', '−1.0e−3']],
  ])('the clock values %j of an axis are %j', (values, texts) => {
    expect(clockNumbers(values)).toEqual(texts);
  });

  test.each([
    [12_345, '12,345'],
    [-12_345.67, '−12,345.7'],
    [6.2133333, '6.21'],
    [0.1 + 0.2, '0.3'],
  ])('the clock value %f is %s', (value, text) => {
    expect(clockNumber(value)).toBe(text);
  });
});

describe('columns without a finite element', () => {
  const times = Array.from({length: 6}, (_, i) => i);
  const axis = timeAxis('step', {steps: times, times, clock: times.map(() => null)});
  const scene = (elements: number[][], changes: Partial<ReturnType<typeof historyFrom>> = {}) =>
    sceneOf({history: {...historyFrom(elements), ...changes}, options: CHART_DEFAULTS, axis, width: 300});

  test('are lost where all is NaN or infinite, and only there', () => {
    const {lost, missing, nonfinite} = scene([[1], [NaN, 1], [NaN, NaN], [Infinity], [], [0]]);
    expect([lost, missing, nonfinite]).toEqual([[2, 3], [], [1, 2, 3]]);
  });

  test('are missing where the series was not recorded', () => {
    const frame = Uint32Array.of(1, 2, 4);
    expect(scene([[1], [2], [3]], {frame, last: frame}).missing).toEqual([0, 3]);
  });

  test('are missing after its last step as far as that is known', () => {
    expect(scene([[1], [2]], {until: 4}).missing).toEqual([2, 3]);
    expect(scene([[1], [2]]).missing).toEqual([]);
  });

  test('are runs of neighbours', () => {
    expect(runsOf([2, 3, 4, 7])).toEqual([[2, 4], [7, 7]]);
    expect(runsOf([])).toEqual([]);
  });
});

test('an empty plot says what became of its values', () => {
  const frames = {steps: [0, 1], times: [0, 1], clock: [null, null]};
  const text = (elements: number[][]) =>
    emptiness(sceneOf({history: historyFrom(elements), options: CHART_DEFAULTS, axis: timeAxis('step', frames), width: 300}));
  expect([[[NaN], [NaN]], [[Infinity]], [[NaN], [-Infinity]], [[], []], [[NaN], []]].map(text)).toEqual([
    'all NaN',
    'all infinite',
    'all NaN or infinite',
    'no elements',
    'all NaN',
  ]);
});
