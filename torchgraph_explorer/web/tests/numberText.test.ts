import {expect, test} from 'vitest';

import {formatBytes, formatRange, fromPython, stepName} from '../src/numberText';

test.each([
  [1, 2, '1 to 2'],
  [-0.4001234, -0.4000123, '−0.400123 to −0.400012'],
  [0.19, 0.19, '0.19'],
  [1e6, 1e6 + 1, '1000000 to 1000001'],
  [NaN, NaN, '–'],
])('a range from %d to %d is written with digits that tell its ends apart', (low, high, expected) => {
  expect(formatRange(low, high)).toBe(expected);
});

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1 kB'],
  [1405, '1.41 kB'],
  [999_499, '999 kB'],
  [999_500, '1 MB'],
  [318_000_000, '318 MB'],
  [2.5e9, '2.5 GB'],
  [7e15, '7000 TB'],
])('%d bytes are written as %s', (bytes, expected) => {
  expect(formatBytes(bytes)).toBe(expected);
});

test.each([
  ['-0.0101', '−0.0101'],
  ['1.2e-05', '1.2e−5'],
  ['-3e+10', '−3e10'],
  ['48.2 %', '48.2 %'],
])('what Python writes as %s is shown as %s', (text, expected) => {
  expect(fromPython(text)).toBe(expected);
});

test.each([
  [0, 'step 0'],
  [999, 'step 999'],
  [10_000_039, 'step 10,000,039'],
])('step %d is written as %s', (step, expected) => {
  expect(stepName(step)).toBe(expected);
});
