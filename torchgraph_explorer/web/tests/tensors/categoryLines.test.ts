import {describe, expect, test} from 'vitest';

import {categoryPlot, MOST_LINES} from '../../src/tensors/categoryLines';
import type {TensorLine} from '../../src/api/tensors';

function lineOf(rows: [step: number, category: string, mean: number][]): TensorLine {
  return {
    step: Float64Array.from(rows, ([step]) => step),
    call: Float64Array.from(rows, () => 0),
    columns: new Map([
      ['count', Float64Array.from(rows, () => 2)],
      ['mean', Float64Array.from(rows, ([, , mean]) => mean)],
    ]),
    categories: rows.map(([, category]) => category),
    skipped: 0,
  };
}

const BOX = {width: 100, height: 10};

describe('lines of categories', () => {
  test('have one scale and one axis, the largest latest value first', () => {
    const {lines, low, high, first, last} = categoryPlot(lineOf([[0, 'a', 1], [0, 'z', 2], [10, 'a', 0], [20, 'z', 4]]), 'mean', BOX);
    expect([low, high, first, last]).toEqual([0, 4, 0, 20]);
    expect(lines.map(({category, steps, values, plot}) => [category, steps, values, plot.path])).toEqual([
      ['z', [0, 20], [2, 4], 'M0 5L100 0'],
      ['a', [0, 10], [1, 0], 'M0 7.5L50 10'],
    ]);
  });

  test('mark the steps where a mean is not finite', () => {
    const {bad, low} = categoryPlot(lineOf([[0, 'a', 1], [0, 'z', NaN], [10, 'a', Infinity], [20, 'a', 2]]), 'mean', BOX);
    expect([bad, low]).toEqual([[50, 0], 1]);
  });

  test('are few, and the others are counted', () => {
    const rows = [...Array(12).keys()].map((i): [number, string, number] => [0, `c${i}`, i]);
    const {lines, others} = categoryPlot(lineOf(rows), 'mean', BOX);
    expect([lines.length, others, lines[0]?.category]).toEqual([MOST_LINES, 12 - MOST_LINES, 'c11']);
  });

  test('are the same ones in each plot, and say nothing of the spread of one sample', () => {
    const line = lineOf([[0, 'a', 1], [0, 'z', 2], [10, 'a', 1], [10, 'z', 2]]);
    line.columns.set('std', Float64Array.of(9, 1, 8, 0)).set('count', Float64Array.of(2, 2, 2, 1));
    const {lines, low, high} = categoryPlot(line, 'std', BOX);
    expect(lines.map(({category, values}) => [category, values])).toEqual([
      ['z', [1, NaN]],
      ['a', [9, 8]],
    ]);
    expect([low, high]).toEqual([1, 9]);
  });

  test('may have nothing finite, or nothing at all', () => {
    expect(categoryPlot(lineOf([[0, 'a', NaN]]), 'mean', BOX)).toMatchObject({low: NaN, high: NaN, others: 0});
    expect(categoryPlot(lineOf([]), 'mean', BOX).lines).toEqual([]);
  });
});
