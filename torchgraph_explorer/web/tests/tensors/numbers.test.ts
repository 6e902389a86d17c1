import {describe, expect, test} from 'vitest';
import {heightsOf} from '../../src/tensors/bars';
import {levelOf, linePlot, nearest} from '../../src/tensors/linePlot';
import {byCategory, correlation, differenceOf, gradientOf, isMagnitude, readable, scaleOf, shader, shortest, summaryOf} from '../../src/tensors/shade';
import type {WantedPart} from '../../src/api/tensors';
import type {Rgb} from '../../src/tensors/shade';
import {filterOf, orderOf} from '../../src/tensors/table';

const GREY = (light: number): Rgb => [light, light, light];
const SHADES = {
  diverging: [GREY(0), GREY(50), GREY(100), GREY(150), GREY(200)],
  sequential: [GREY(0), GREY(250)],
  ...{nan: [255, 0, 0] as const, positiveInfinity: [254, 0, 0] as const, negativeInfinity: [253, 0, 0] as const},
};

describe('colours', () => {
  const scale = scaleOf({low: -1, high: 4, typical: 2}, {dtype: 'float32'}, 'all');
  const colour = shader(SHADES, scale);

  test('have zero in the middle, and the largest magnitude at an end', () => {
    expect([colour(0)[0], colour(4)[0], colour(-4)[0]]).toEqual([100, 200, 0]);
  });

  test('from zero on give small values the most of the ramp, and the legend says so', () => {
    const shade = shader(SHADES, scaleOf({low: 0, high: 1, typical: 1}, {dtype: 'float32'}, 'all'));
    expect([0, 0.04, 0.25, 1].map((value) => shade(value)[0])).toEqual([0, 50, 125, 250]);
    expect(gradientOf(['a', 'b', 'c'], false)).toBe('linear-gradient(to right, a 0%, b 25%, c 100%)');
    expect(gradientOf(['a', 'b', 'c'], true)).toBe('linear-gradient(to right, a 0%, b 50%, c 100%)');
  });

  test('are the end of the ramp beyond it', () => expect(colour(1e9)).toEqual(GREY(200)));

  test('mark NaN and both infinities', () => {
    expect([NaN, Infinity, -Infinity].map((value) => colour(value)[0])).toEqual([255, 254, 253]);
  });

  test.each([
    ['bytes from zero on', {low: 3, high: 9, typical: 9}, 'uint8', 'all', {low: 0, high: 9, isSigned: false}],
    ['counts from zero on', {low: 0, high: 9, typical: 9}, 'int64', 'all', {low: 0, high: 9, isSigned: false}],
    ['attention from zero on', {low: 0, high: 0.4, typical: 0.3}, 'float32', 'all', {low: 0, high: 0.4, isSigned: false}],
    ['signed integers', {low: -3, high: 9, typical: 9}, 'int64', 'all', {low: -9, high: 9, isSigned: true}],
    ['99 of 100 elements', {low: -3, high: 900, typical: 9}, 'float32', 'typical', {low: -9, high: 9, isSigned: true}],
    ['nothing but zeros', {low: 0, high: 0, typical: 0}, 'float32', 'typical', {low: -1, high: 1, isSigned: true}],
    ['nothing finite', {low: null, high: null, typical: null}, 'float32', 'all', {low: -1, high: 1, isSigned: true}],
  ] as const)('are scaled by %s', (_, bounds, dtype, choice, expected) => expect(scaleOf(bounds, {dtype}, choice)).toEqual(expected));

  test.each([
    ['std', 'real', 'float32', true],
    ['largest', 'real', 'float32', true],
    ['mean', 'abs', 'float32', false],
    ['values', 'abs', 'float32', false],
    ['values', 'abs', 'complex64', true],
    ['values', 'angle', 'complex64', false],
  ] as const)('begin at zero where numbers cannot be negative: %s, %s of %s', (what, part, dtype, expected) => {
    const asked: WantedPart = {...{module: '', call: 0, role: 'output', path: 'output', kind: 'value', loss: '', step: 0, at: '', shrink: []}, what, part};
    expect(isMagnitude(asked, dtype)).toBe(expected);
    expect(scaleOf({low: -1, high: 4, typical: 2}, {dtype, isMagnitude: expected}, 'all').low).toBe(expected ? 0 : -4);
  });
});

test.each([
  [Math.fround(1 / 3), 'float32', '0.3333'],
  [-0.000012345678, 'float32', '−1.235e−5'],
  [0.00123456, 'float32', '0.001235'],
  [12345.678, 'float32', '12346'],
  [1234567.5, 'float32', '1.235e6'],
  [5e-324, 'float64', '4.941e−324'],
  [1.23456789e-9, 'float64', '1.235e−9'],
  [16777217, 'int32', '16777217'],
  [1, 'bool', 'True'],
  [NaN, 'float32', 'NaN'],
] as const)('a number of a table has four digits, or its whole part: %d of %s is %s', (value, dtype, text) => expect(readable(value, dtype)).toBe(text));

test.each([
  [Math.fround(0.1), 'float32', '0.1'],
  [0.1, 'float64', '0.1'],
  [Math.fround(1 / 3), 'float32', '0.33333334'],
  [1 / 3, 'float64', '0.3333333333333333'],
  [-1e-30, 'float64', '−1e−30'],
  [1, 'bool', 'True'],
  [16777217, 'int32', '16777217'],
  [NaN, 'float32', 'NaN'],
  [-Infinity, 'float32', '−∞'],
])('%d of %s is written as %s', (value, dtype, text) => expect(shortest(value, dtype)).toBe(text));

test('a summary counts what is not finite, and is of the rest', () => {
  expect(summaryOf([1, 3, NaN, Infinity, -Infinity])).toEqual({count: 5, nan: 1, positive_infinity: 1, negative_infinity: 1, low: 1, high: 3, mean: 2, std: 1, typical: 1});
  expect(summaryOf([NaN]).mean).toBeNull();
});

test('values are told by category, the largest first', () => {
  expect(byCategory([1, 5, 3, NaN], ['cat', 'dog', 'cat', 'bird'])).toEqual([
    {category: 'bird', count: 1, mean: null},
    {category: 'dog', count: 1, mean: 5},
    {category: 'cat', count: 2, mean: 2},
  ]);
});

test('a difference is taken element by element', () => {
  expect([...differenceOf(Float32Array.of(3, 5), Float32Array.of(1, 9))]).toEqual([2, -4]);
});

describe('a correlation', () => {
  test.each([
    ['of a line', [1, 2, 3], [2, 4, 6], 1],
    ['of a falling line', [1, 2, 3], [3, 2, 1], -1],
    ['leaves out what is not finite', [1, 2, 3, NaN], [2, 4, 6, 0], 1],
  ])('%s', (_, a, b, r) => expect(correlation(a, b).r).toBeCloseTo(r));

  test('of a constant is not known', () => expect(correlation([1, 2, 3], [5, 5, 5])).toEqual({r: NaN, pairs: 3}));
});

describe('a table', () => {
  const values = Float32Array.of(0.5, -3, NaN, 2);
  const rows = (text: string): number[] => orderOf(4, null, filterOf(text, values, [2, 2])!, false);

  test.each([
    ['', [0, 1, 2, 3]],
    ['> 0.5', [3]],
    ['|x| >= 2', [1, 3]],
    ['< −1', [1]],
    ['nan', [2]],
    ['1, *', [2, 3]],
    ['*, 1', [1, 3]],
    ['[0, 1]', [1]],
  ])('keeps what matches %j', (text, found) => expect(rows(text)).toEqual(found));

  test.each(['what', '1, 2, 3', '>', '-1'])('says that %j is not understood', (text) => expect(filterOf(text, values, [2, 2])).toBeNull());

  test('is sorted with NaN where the largest are', () => {
    expect(orderOf(4, values, () => true, true)).toEqual([2, 3, 0, 1]);
    expect(orderOf(4, values, () => true, false)).toEqual([1, 0, 3, 2]);
  });
});

describe('a line', () => {
  test('is broken where a value is not finite, which is marked', () => {
    const {path, bad, low, high, dots} = linePlot([0, 10, 20, 30], [0, NaN, 1, 0.5], {width: 30, height: 10});
    expect([path, bad, low, high, dots.length]).toEqual(['M0 10M20 0L30 5', [10], 0, 1, 3]);
  });

  test('of nothing finite has no range', () => expect(linePlot([0], [NaN], {width: 30, height: 10}).low).toBeNaN());

  test('is pointed at where it is nearest', () => expect([nearest([0, 10, 30], 19), nearest([], 3)]).toEqual([1, null]));
});

test('bars rise from zero and fall below it', () => {
  expect(heightsOf([1, -1, NaN], 10)).toEqual({zero: 5, tops: [0, 10, NaN]});
  expect(heightsOf([2, 4], 10).zero).toBe(10);
  expect(heightsOf([2.5], 10, {low: -5, high: 5})).toEqual({zero: 5, tops: [2.5]});
  expect(heightsOf([20], 10, {low: null, high: 5}).tops).toEqual([0]);
});

test('a line of values that differ by rounding alone is level', () => {
  const mean = [0.0416666664, 0.0416666669, NaN, 0.0416666667];
  const plot = linePlot([0, 1, 2, 3], mean, {width: 30, height: 10}, levelOf(mean));
  expect(plot.dots.map(([, y]) => y)).toEqual([5, 5, 5]);
  expect(plot.low).toBe(plot.high);
  expect([levelOf([1, 1.0001]), levelOf([2, 2]), levelOf([NaN])]).toEqual([undefined, undefined, undefined]);
});
