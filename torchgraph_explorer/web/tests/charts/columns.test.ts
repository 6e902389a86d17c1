import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import {columnsOf, entriesByColumn} from '../../src/charts/columns';

const plain = (columns: ReturnType<typeof columnsOf>) => ({
  spans: [...columns.left].map((left, i) => [left, columns.right[i]]),
  of: [...columns.of],
});

describe('columns', () => {
  test('reach halfway to their neighbours', () => {
    expect(plain(columnsOf([5, 15, 45], 60))).toEqual({spans: [[0, 10], [10, 30], [30, 60]], of: [0, 1, 2]});
  });

  test('of a single frame are the whole width', () => {
    expect(plain(columnsOf([30], 60)).spans).toEqual([[0, 60]]);
  });

  test('reach beyond the last frame, wherever the run is said to end', () => {
    expect(plain(columnsOf([2.5, 9.3], 20, {left: 2.5, right: 9.3})).spans.at(-1)![1]).toBe(10);
  });

  test('are shared by frames in one pixel', () => {
    expect(plain(columnsOf([0.1, 0.5, 0.9, 1.2], 2))).toEqual({spans: [[0, 1], [1, 2]], of: [0, 0, 0, 1]});
  });

  test('take frames that are out of order, and leave out those without a place', () => {
    expect(plain(columnsOf([15, NaN, 5], 20))).toEqual({spans: [[0, 10], [10, 20]], of: [1, -1, 0]});
  });

  test('cover every pixel once, however crowded', () => {
    const columns = columnsOf(Array.from({length: 1000}, (_, i) => (i / 1000) ** 3 * 150), 150);
    const widths = [...columns.left].map((left, i) => columns.right[i]! - left);
    expect(Math.min(...widths)).toBeGreaterThan(0);
    expect(widths.reduce((sum, width) => sum + width)).toBe(150);
    expect(Math.min(...columns.of)).toBe(0);
  });

  test('without frames are none', () => {
    expect(plain(columnsOf([], 60))).toEqual({spans: [], of: []});
  });
});

test('entries of a series are gathered by column, even where the time axis runs back', () => {
  const columns = columnsOf([5, 15, 5, 25], 30);
  expect(entriesByColumn(historyFrom([[1], [1], [1], null]), columns)).toEqual([
    {column: 0, entries: [0, 2]},
    {column: 1, entries: [1]},
  ]);
});
