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
  ['powers of ten', [0.5, 2000], 'log', ['0.5', '2000', '100']],
] as const)('the value axis of %s has no number twice', (_, values, kind, expected) => {
  expect(labels([...values], kind)).toEqual(expected);
});
