import {expect, test} from 'vitest';

import {neuronCsv} from '../../src/view/tensors/neuronCsv';

test('the rows of a table of neurons are saved in their order, with all digits', () => {
  const columns = [
    {name: 'value of sample 0', values: Float64Array.of(0.1, NaN, -1e-7, Infinity), dtype: 'float64'},
    {name: 'gradient, "policy"', values: Float32Array.of(0.1, 2, 3, -4), dtype: 'float32'},
  ];
  expect(neuronCsv(columns, [2, 0, 1, 3], [2, 2])).toBe(
    'index 0,index 1,value of sample 0,"gradient, ""policy"""\r\n1,0,-1e-7,3\r\n0,0,0.1,0.1\r\n0,1,nan,2\r\n1,1,inf,-4\r\n',
  );
});
