import {expect, test} from 'vitest';
import {ofSteps} from '../src/api/scalars';
import {numberOf} from '../src/model/scalars';
import type {ScalarData} from '../src/model/scalars';
import type {Model} from '../src/model/model';
import {curvesOf, lookOf} from '../src/view/scalars/curves';

/** What was logged, as name and label; the values are the number of the scalar. */
function data(...scalars: [name: string, label?: string][]): ScalarData {
  return {
    ...{version: '', notes: [], unit: 1},
    scalars: scalars.map(([name, label]) => ({name, ...(label === undefined ? {} : {label}), values: 1, is_axis: false})),
    values: new Map(scalars.map((_, number) => [number, ofSteps(Float64Array.of(0), Float64Array.of(0), Float64Array.of(number))])),
  };
}

function run(number: number, logged: ScalarData) {
  return {number, label: `run ${number}`, model: {scalars: {data: {value: logged}}} as unknown as Model};
}

test('a scalar goes by its values without a label, or by its first label', () => {
  const logged = data(['loss', 'eval'], ['loss'], ['acc', 'train'], ['acc', 'eval']);
  expect(['loss', 'acc', 'no'].map((name) => numberOf(logged, name))).toEqual([1, 2, -1]);
  expect(numberOf(null, 'loss')).toBe(-1);
});

test('each label of a scalar has a line, at the same place in every chart', () => {
  const runs = [run(0, data(['loss', 'eval'], ['loss'], ['loss', 'test'], ['acc', 'test'])), run(2, data(['loss', 'test']))];
  const found = (name: string) => curvesOf(runs, name).map(({number, tag, place, values}) => [number, tag, place, values.value[0]]);
  expect(found('loss')).toEqual([
    [0, null, 0, 1],
    [0, 'eval', 1, 0],
    [0, 'test', 2, 2],
    [2, 'test', 2, 0],
  ]);
  expect(found('acc')).toEqual([[0, 'test', 2, 3]]);
});

test('values that have not come have no line', () => {
  const logged = {...data(['loss'], ['loss', 'eval']), values: new Map()};
  expect(curvesOf([run(0, logged)], 'loss')).toEqual([]);
});

test.each([
  {isCompared: false, hasLabels: false, one: 'null ', many: 1},
  {isCompared: false, hasLabels: true, one: 'var(--run-0) ', many: 12},
  {isCompared: true, hasLabels: true, one: 'var(--run-0) ', many: 4},
])('labels are told apart: compared $isCompared, labels $hasLabels', ({isCompared, hasLabels, one, many}) => {
  const looks = Array.from({length: 12}, (_, place) => {
    const {colour, dashes} = lookOf({number: 0, place}, {isCompared, hasLabels});
    return `${colour} ${dashes.join(' ')}`;
  });
  expect(looks[0]).toBe(one);
  expect(new Set(looks).size).toBe(many);
});
