import {expect, test} from 'vitest';
import {curveScale} from '../src/charts/curve';
import {axisLabels} from '../src/view/scalars/axisLabels';

function labels(values: number[], kind: 'linear' | 'log' = 'linear'): string[] {
  const low = Float64Array.from(values);
  return axisLabels(curveScale({low, high: low, value: low}, kind)!, (text) => text.length < 7).map(({text}) => text);
}

test.each([
  ['one value', [0.001, 0.001], 'linear', ['0.001']],
  ['two values', [1.72, 2.3], 'linear', ['1.72', '2.3', '2']],
  ['values of which only the fourth digit differs', [1e9, 1.0026e9], 'linear', ['1.001e9', '1.002e9']],
  ['values that no short number tells apart', [123456.789, 123456.818], 'linear', ['1.235e5']],
  ['powers of ten', [0.5, 2000], 'log', ['0.5', '2000', '100']],
] as const)('the value axis of %s has no number twice', (_, values, kind, expected) => {
  expect(labels([...values], kind)).toEqual(expected);
});
