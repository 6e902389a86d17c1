import {describe, expect, test} from 'vitest';

import {historyFrom, normal, randomFrom} from '../../gallery/samples';
import {columnsOf} from '../../src/charts/columns';
import {heatOf, intensity, rimIntensity} from '../../src/charts/heat';
import {bodyPixels, rimPixels} from '../../src/charts/pixels';
import {rowGrid} from '../../src/charts/grid';
import {linearScale} from '../../src/charts/scale';

const grid = rowGrid(linearScale({low: -2, high: 2}), 8);
const row = (heat: ReturnType<typeof heatOf>, column: number) => Array.from(heat.shares.subarray(column * 8, column * 8 + 8));

describe('a heat grid', () => {
  test('adds up the frames that share a column', () => {
    const heat = heatOf(historyFrom([[1, 1, 1], [-1]]), columnsOf([0.1, 0.6], 1), grid);
    expect(row(heat, 0)).toEqual([0, 0, 0.25, 0, 0, 0, 0.75, 0]);
  });

  test('accounts for every element of every column', () => {
    const random = randomFrom(5);
    const history = historyFrom(Array.from({length: 9}, () => [...normal(random, 300, {std: 2}), 0, 0]));
    const heat = heatOf(history, columnsOf([...Array(9).keys()].map((i) => i + 0.5), 9), grid);
    for (let column = 0; column < 9; column++) {
      const inside = row(heat, column).reduce((sum, share) => sum + share);
      expect(inside + heat.below[column]! + heat.above[column]!).toBeCloseTo(1, 5);
    }
  });

  test('counts what is not finite, and leaves an all-NaN column blank', () => {
    const heat = heatOf(historyFrom([[NaN, Infinity], [1]]), columnsOf([0.5, 1.5], 2), grid);
    expect([...heat.nonfinite]).toEqual([2, 0]);
    expect(row(heat, 0)).toEqual(Array(8).fill(0));
  });

  test('is not outshone by a spike of zeros', () => {
    const heat = heatOf(historyFrom([[...Array(90).fill(0), ...Array(10).fill(1)]]), columnsOf([0.5], 1), grid);
    expect(heat.peak).toBeCloseTo(0.1, 6);
  });

  test('of an empty series is blank', () => {
    expect(heatOf(historyFrom([]), columnsOf([0.5], 1), grid)).toMatchObject({peak: 1, elements: 0});
  });
});

describe('intensity', () => {
  const scale = {peak: 0.5, elements: 1000} as Parameters<typeof intensity>[1];
  test.each([
    {counts: 'linear', share: 0, strength: 0},
    {counts: 'linear', share: 0.25, strength: 0.5},
    {counts: 'linear', share: 1, strength: 1},
    {counts: 'log', share: 0.5, strength: 1},
  ] as const)('of $share, $counts, is $strength', ({counts, share, strength}) => {
    expect(intensity(share, scale, counts)).toBeCloseTo(strength, 9);
  });

  test('of a single element is never nothing', () => {
    expect(intensity(1e-9, scale, 'linear')).toBeGreaterThan(0);
    expect(rimIntensity(1e-9)).toBeGreaterThan(0.2);
  });
});

test('pixels have the lowest row at the bottom, and rims for what lies above and below', () => {
  const heat = heatOf(historyFrom([[-1.9, -1.9, 50]]), columnsOf([1], 2), grid);
  const table = new Uint8ClampedArray(256 * 4).fill(255);
  const body = bodyPixels(heat, table, 'linear');
  const opaque = Array.from({length: 8}, (_, y) => body.bytes[y * 2 * 4 + 3]);
  expect(opaque).toEqual([0, 0, 0, 0, 0, 0, 0, 255]);
  const rims = rimPixels(heat, [1, 2, 3]);
  expect([rims.bytes[3]! > 0, rims.bytes[2 * 4 + 3]]).toEqual([true, 0]);
});
