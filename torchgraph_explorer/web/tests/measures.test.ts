import {expect, test} from 'vitest';
import {formatCount, formatNumber} from '../src/numberText';
import {MEASURES, rowAt} from '../src/statistics';

test.each([
  [0, '0'],
  [-0.03125, '−0.0313'],
  [1.2e-7, '1.2e−7'],
  [18_768, '18768'],
  [-2505.4, '−2505'],
  [999_999.7, '1000000'],
  [4.2e9, '4.2e9'],
  [NaN, '–'],
  [-Infinity, '−∞'],
])('%d is written %s', (value, text) => expect(formatNumber(value)).toBe(text));

test.each([
  [0, '0'],
  [999, '999'],
  [73_984, '74k'],
  [999_600, '1M'],
  [25_600_000, '25.6M'],
  [7e9, '7B'],
])('%i elements are written %s', (count, text) => expect(formatCount(count)).toBe(text));

test('measures are read off a row of statistics', () => {
  const two = new Float32Array(24);
  two.set([100, 50, 1, 2, 3, 25, -1, 4, 0.5, 0.75, 2, 8], 12);
  const values = Object.fromEntries(MEASURES.map(({name, of}) => [name, of(rowAt(two, 1))]));
  expect(values).toEqual({
    ...{mean: 0.5, std: 2, rms: Math.hypot(0.5, 2), absolute_mean: 0.75, l2_norm: 8},
    ...{min: -1, max: 4, largest: 4, zero_fraction: 0.5, nonfinite: 6},
  });
});
