import {describe, expect, test} from 'vitest';

import {positionsOf} from '../../src/charts/positions';
import {timeAxis} from '../../src/charts/timeAxis';

const axisOf = (steps: number[]) => timeAxis('step', {steps, times: [], clock: []});
const eight = axisOf([0, 1, 2, 3, 4, 5, 6, 7]);

describe('positions of merged frames', () => {
  test('are in the middle of their bin', () => {
    const {pixels, middles} = positionsOf(eight, {width: 80, unit: 4});
    expect([...pixels]).toEqual([5, 15, 25, 35, 45, 55, 65, 75]);
    expect([...middles]).toEqual([20, 20, 20, 20, 60, 60, 60, 60]);
  });

  test('share a column with all frames of their bin', () => {
    const {columns} = positionsOf(eight, {width: 80, unit: 4});
    expect([[...columns.of], [...columns.left], [...columns.right]]).toEqual([[0, 0, 0, 0, 1, 1, 1, 1], [0, 40], [40, 80]]);
  });

  test('are numbered without those bins that hold no frame', () => {
    const {binOf} = positionsOf(axisOf([0, 3, 40, 41, 44]), {width: 80, unit: 4});
    expect([0, 1, 2, 3, 4, 5].map(binOf)).toEqual([0, 0, 1, 1, 2, NaN]);
  });

  test('of frames alone are those of the frames', () => {
    const {pixels, middles, binOf} = positionsOf(eight, {width: 80, unit: 1});
    expect([middles === pixels, binOf(6)]).toEqual([true, 6]);
  });

  test('are worked out once for all strips of a width', () => {
    expect(positionsOf(eight, {width: 60, unit: 2})).toBe(positionsOf(eight, {width: 60, unit: 2}));
  });
});
