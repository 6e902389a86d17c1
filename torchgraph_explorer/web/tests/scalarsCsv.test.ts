import {expect, test} from 'vitest';

import {ofSteps} from '../src/api/scalars';
import {countOf, scalarsCsv} from '../src/view/scalars/csv';

test('scalars are saved with all digits, those that have come', () => {
  const scalars = [{name: 'train/loss'}, {name: '=acc, "top"', label: 'eval'}, {name: 'folded'}].map((one) => ({...one, values: 2, is_axis: false}));
  const values = new Map([
    [0, ofSteps(Float64Array.of(0, 10_000_000), Float64Array.of(1.5, 2), Float64Array.of(0.1, NaN))],
    [1, ofSteps(Float64Array.of(3), Float64Array.of(2), Float64Array.of(-Infinity))],
  ]);
  expect(countOf({scalars, values})).toBe(2);
  expect(scalarsCsv({scalars, values})).toBe(
    [
      'name,label,step,last_step,values,not_finite,time,value,low,high',
      'train/loss,,0,0,1,0,1.5,0.1,0.1,0.1',
      'train/loss,,10000000,10000000,1,1,2,nan,nan,nan',
      '"\'=acc, ""top""",eval,3,3,1,1,2,-inf,nan,nan',
      '',
    ].join('\r\n'),
  );
});
