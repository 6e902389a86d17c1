import {describe, expect, test} from 'vitest';
import {BAD} from '../../src/xray/codes';
import {codeOf} from './codes';
import {arranged, csvOf, ranksOf, tableOf, trendOf} from '../../src/xray/table';
import type {Xray} from '../../src/xray/matrix';

const codes = (...values: number[]): Uint16Array => Uint16Array.from(values, codeOf);
const MODULES = ['', 'a', 'b'];
const ALL: Xray = {
  statistic: 'std',
  modules: MODULES,
  first: Float64Array.of(0, 1, 2),
  last: Float64Array.of(0, 1, 2),
  codes: codes(1, 2, 4, 4, 2, 1, NaN, NaN, NaN),
};
const now = {modules: MODULES, codes: Uint16Array.of(codeOf(4), codeOf(1), BAD)};
const table = tableOf({now: new Map([['std', now], ['zeros', {modules: MODULES, codes: codes(0.5, 0.25, NaN)}]]), before: {modules: ['', 'b', 'a'], codes: codes(1, NaN, 2)}, all: ALL, isShare: false});

describe('the table of modules', () => {
  test('has each statistic at the step, the change and the trend', () => {
    expect(table.map(({module, values, change, trend, isBad}) => [module, values['std'], values['zeros'], change, trend, isBad])).toEqual([
      ['', 4, 0.5, 4, 1, false],
      ['a', 1, 0.25, 0.5, -1, false],
      ['b', NaN, NaN, NaN, NaN, true],
    ]);
  });

  test('has the difference of a share', () => {
    const shares = tableOf({now: new Map([['std', now]]), before: {modules: MODULES, codes: codes(1, 1, 1)}, all: ALL, isShare: true});
    expect(shares.map(({change}) => change)).toEqual([3, 0, NaN]);
  });

  test.each([
    {order: {by: 'module', isDescending: false}, filter: '', expected: ['', 'a', 'b']},
    {order: {by: 'std', isDescending: true}, filter: '', expected: ['', 'a', 'b']},
    {order: {by: 'std', isDescending: false}, filter: '', expected: ['a', '', 'b']},
    {order: {by: 'trend', isDescending: false}, filter: '', expected: ['a', '', 'b']},
    {order: {by: 'change', isDescending: true}, filter: 'B', expected: ['b']},
  ])('is sorted by $order.by and filtered by "$filter", without numbers last', ({order, filter, expected}) => {
    expect(arranged(table, order, filter).map(({module}) => module)).toEqual(expected);
  });

  test('is saved as CSV that no spreadsheet runs', () => {
    const text = csvOf([{...table[0]!, module: '=1,"2"'}, table[2]!], {statistics: ['std', 'zeros'], chosen: 'std', since: 1});
    expect(text).toBe('module,std,zeros,std change since step 1,std trend,not finite\r\n"\'=1,""2""",4,0.5,4,1,0\r\nb,,,,,1\r\n');
  });
});

describe('a trend', () => {
  test.each([
    [[1, 1, 1], 0],
    [[1, 3, 2], 0.5],
    [[1, 2], NaN],
  ])('of %j is %f', (values, expected) => expect(trendOf(codes(...values))).toBe(expected));

  test('shares the ranks of equal values', () => expect(ranksOf([5, 1, 5, 0])).toEqual([2.5, 1, 2.5, 0]));
});
