import {describe, expect, test} from 'vitest';

import {historyFrom, normal, randomFrom} from '../../gallery/samples';
import {elementsIn} from '../../src/charts/heat';
import {boundsOf, histogramOf} from '../../src/history';
import {lowerEdge, upperEdge} from '../../src/histogram/buckets';
import {countIn, rebin} from '../../src/histogram/rebin';
import {isWhole, rowGrid, type RowGrid} from '../../src/charts/grid';
import {linearScale, symlogScale} from '../../src/charts/scale';

function rowsOf(elements: number[], grid: RowGrid) {
  const history = historyFrom([elements]);
  return rebin(histogramOf(history, 0), boundsOf(history, 0), grid);
}

describe('rebinning', () => {
  const random = normal(randomFrom(3), 5000);
  const ends = {low: -1.5, high: 1};
  test.each([
    {name: 'linear', grid: rowGrid(linearScale(ends), 17)},
    {name: 'symlog', grid: rowGrid(symlogScale(ends, 0.01), 17)},
  ])('on a $name axis keeps every element', ({grid}) => {
    const rows = rowsOf([...random, 0, 0, 0], grid);
    expect(elementsIn(rows)).toBeCloseTo(5003, 6);
    expect(rows.zeros).toBe(3);
    expect(rows.below).toBeCloseTo(random.filter((value) => value < -1.5).length, -2);
    expect(rows.above).toBeCloseTo(random.filter((value) => value > 1).length, -2);
  });

  test('spreads a bucket over rows in proportion to their overlap', () => {
    const history = historyFrom([[1, 1.0625, 1.125, 1.1875]]); // one bucket, [1, 1.25), which its largest element cuts short
    const rows = rebin(histogramOf(history, 0), {low: 1, high: 1.2}, rowGrid(linearScale({low: 0.9, high: 1.3}), 4));
    expect([...rows.counts].map((count) => Number(count.toFixed(9)))).toEqual([0, 2, 2, 0]);
  });

  test.each([0.3, 0.01, 40])('spreads buckets that no extreme cuts short as if each were alone, on an axis to %d', (reach) => {
    const buckets = [...Array(60).keys()].map((i) => 490 + i).flatMap((bucket) => [-bucket, bucket]);
    const low = -reach / 2;
    const grid = rowGrid(linearScale({low, high: reach}), 9);
    const rows = rebin({buckets, counts: buckets.map(() => 8)}, {low: -Infinity, high: Infinity}, grid);
    const share = (from: number, to: number): number =>
      buckets.map((bucket) => [lowerEdge(bucket), upperEdge(bucket)]).reduce((sum, [a, b]) => sum + (8 * Math.max(0, Math.min(b!, to) - Math.max(a!, from))) / (b! - a!), 0);
    rows.counts.forEach((count, row) => expect(count).toBeCloseTo(share(low + (row * 1.5 * reach) / 9, low + ((row + 1) * 1.5 * reach) / 9), 6));
    expect(rows.below).toBeCloseTo(share(-Infinity, low), 6);
    expect(rows.above).toBeCloseTo(share(reach, Infinity), 6);
  });

  test('puts a constant in one row', () => {
    const rows = rowsOf(Array(40).fill(3), rowGrid(linearScale({low: 2.7, high: 3.3}), 64));
    expect([...rows.counts].filter((count) => count > 0)).toEqual([40]);
  });

  test('puts the zeros in the row that holds zero, as a spike of their own', () => {
    const grid = rowGrid(linearScale({low: -1, high: 1}), 4);
    const rows = rowsOf([0, 0, 0.3], grid);
    expect([grid.zeroRow, rows.zeros, rows.counts[2], countIn(rows, 2, grid)]).toEqual([2, 2, 1, 3]);
  });

  test.each([
    {ends: {low: 1, high: 2}, rim: {below: 2, above: 0}},
    {ends: {low: -2, high: -1}, rim: {below: 0, above: 2}},
  ])('puts zeros outside $ends in a rim', ({ends, rim}) => {
    expect(rowsOf([0, 0], rowGrid(linearScale(ends), 4))).toMatchObject({zeros: 0, ...rim});
  });

  test('puts the largest element in the top row', () => {
    expect(rowsOf([1, 1], rowGrid(linearScale({low: 0, high: 1}), 4)).counts[3]).toBe(2);
  });

  test('puts whole numbers on those numbers', () => {
    const grid = rowGrid(linearScale({low: -2.5, high: 9.5}), 12, true);
    const rows = rowsOf([-2, -1, 0, 1, 2, 3, 8, 9], grid);
    expect(Array.from(rows.counts, (_, row) => countIn(rows, row, grid))).toEqual([1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1]);
  });
});

describe('a history', () => {
  test.each([
    {elements: [0, 1, 5, -3], whole: true},
    {elements: [0.5, 1], whole: false},
    {elements: [1, 2.5], whole: false},
    {elements: [NaN], whole: true},
  ])('of $elements being whole is $whole', ({elements, whole}) => {
    expect(isWhole(historyFrom([elements]))).toBe(whole);
  });
});
