import {describe, expect, test} from 'vitest';
import type {Role, SeriesInfo} from '../src/api/types';
import {parameterSeries, together} from '../src/graph/parameters';
import {stateOf} from '../src/graph/nodeState';
import {PARAMETER_MEASURES} from '../src/statistics';
import type {Row} from '../src/statistics';

const one = (series: number, module: string, kind: SeriesInfo['kind'] = 'value', role: Role = 'param'): SeriesInfo => ({series, module, call: null, role, path: 'weight', kind});

const row = (values: Partial<Row>): Row => ({
  ...{count: 4, sampled: 4, nan: 0, positive_infinity: 0, negative_infinity: 0, zeros: 0},
  ...{min: -1, max: 1, mean: 0, absolute_mean: 1, std: 1, l2_norm: 3},
  ...values,
});

describe('the parameters of a module', () => {
  test('are its own and those of all that it consists of', () => {
    const series = [one(0, ''), one(1, 'a.b.0'), one(2, 'a.bc'), one(3, 'a.b'), one(4, 'a.b', 'grad'), one(5, 'a.b', 'value', 'output')];
    expect([...parameterSeries(series, 'value')]).toEqual([
      ['', [0, 1, 2, 3]],
      ['a.b.0', [1]],
      ['a', [1, 2, 3]],
      ['a.b', [1, 3]],
      ['a.bc', [2]],
    ]);
  });

  test('have one norm, and what is not finite in any of them counts', () => {
    const found = together([row({}), row({l2_norm: 4, max: 7, nan: 1, mean: 2, sampled: 12})])!;
    expect(found).toMatchObject({l2_norm: 5, max: 7, min: -1, nan: 1, count: 8, sampled: 16, mean: 1.5});
    expect(together([])).toBeNull();
  });

  test.each([
    ['param_norm', {kind: 'value', value: 5}],
    ['param_grad', {kind: 'value', value: 5}],
    ['update_norm', {kind: 'value', value: 5}],
    ['update_ratio', {kind: 'value', value: 0.5}],
  ])('colour a node by %s', (name, state) => {
    const measure = PARAMETER_MEASURES.find((each) => each.name === name)!;
    expect(stateOf(together([row({max: 0.5}), row({l2_norm: 4, max: 0.1})])!, measure)).toEqual(state);
    expect(stateOf(together([row({}), row({nan: 1})])!, measure).kind).toBe('nonfinite');
  });
});
