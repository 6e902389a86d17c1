import {expect, test} from 'vitest';

import {formatRange} from '../src/numberText';

test.each([
  [1, 2, '1 to 2'],
  [-0.4001234, -0.4000123, '−0.400123 to −0.400012'],
  [0.19, 0.19, '0.19'],
  [1e6, 1e6 + 1, '1000000 to 1000001'],
  [NaN, NaN, '–'],
])('a range from %d to %d is written with digits that tell its ends apart', (low, high, expected) => {
  expect(formatRange(low, high)).toBe(expected);
});
