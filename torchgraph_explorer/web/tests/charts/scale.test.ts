import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import {linearBelow, linearScale, rowEdges, rowOf, symlogScale, valueTicks} from '../../src/charts/scale';

const ends = {low: -100, high: 1000};

describe.each([linearScale(ends), symlogScale(ends, 0.1)])('a $kind axis', (scale) => {
  test('places its ends at 0 and 1', () => {
    expect([scale.position(-100), scale.position(1000)]).toEqual([0, 1]);
  });

  test.each([-100, -0.01, 0, 0.1, 42, 1000])('finds %f again from its place', (value) => {
    expect(scale.valueAt(scale.position(value))).toBeCloseTo(value, 9);
  });

  test('has rising row edges from end to end', () => {
    const edges = [...rowEdges(scale, 9)];
    expect([edges[0], edges[9]]).toEqual([-100, 1000]);
    expect(edges).toEqual([...edges].sort((a, b) => a - b));
  });

  test.each([
    [-101, -1],
    [-100, 0],
    [1000, 8],
    [1001, 9],
  ])('has %f in row %i of 9', (value, row) => {
    expect(rowOf(scale, 9, value)).toBe(row);
  });
});

describe('ticks', () => {
  test('of a linear axis are round', () => {
    expect(valueTicks(linearScale({low: -1.7, high: 1.7}), 4)).toEqual([-1, 0, 1]);
  });

  test('of a symlog axis are zero and powers of ten', () => {
    expect(valueTicks(symlogScale({low: -1000, high: 1000}, 1), 6)).toEqual([-1000, -100, -10, 0, 10, 100, 1000]);
  });

  test('of a symlog axis within one power are still there', () => {
    expect(valueTicks(symlogScale({low: 2.7, high: 3.3}, 0.3), 3)).toEqual([2.8, 3, 3.2]);
  });
});

test('a symlog axis turns linear below nine tenths of the magnitudes that are not zero', () => {
  const history = historyFrom([[0, 0, 0, ...Array.from({length: 100}, (_, i) => (i % 2 ? 1 : -1) * (i + 1))]]);
  expect(linearBelow(history, {low: -100, high: 100})).toBeCloseTo(10, -0.5);
});
