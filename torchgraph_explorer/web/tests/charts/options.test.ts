import {expect, test} from 'vitest';

import {recordedOptions} from '../../src/charts/options';

test.each([
  [64, 64],
  [1, 1],
  [0, 64],
  [2 ** 31, 4096],
  [NaN, 64],
])('of a session that says %d bins a histogram has %d rows', (bins, rows) => {
  expect(recordedOptions({bins, reject_outlier_proportion: 0.1})).toEqual({bins: rows, reject: 0.1});
});
