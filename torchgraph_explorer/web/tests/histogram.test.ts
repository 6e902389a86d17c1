import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';

import {rowGrid} from '../src/charts/grid';
import {linearScale} from '../src/charts/scale';
import {bucketOf, lowerEdge, upperEdge} from '../src/histogram/buckets';
import {quantiles, QUANTILES, sumOf} from '../src/histogram/histogram';
import type {Bounds, Histogram} from '../src/histogram/histogram';
import {countIn, rebin} from '../src/histogram/rebin';
import {trimmed} from '../src/histogram/trimmed';

/** Null stands for none: JSON has no NaN. */
interface Named {
  name: string;
  buckets: number[];
  counts: number[];
  low: number | null;
  high: number | null;
  values: (number | null)[];
}

interface Contract {
  edges: {bucket: number; lower: number; upper: number}[];
  bucket_of: {value: number; bucket: number}[];
  shares: number[];
  quantiles: Named[];
  sums: {names: [string, string]; buckets: number[]; counts: number[]}[];
  rejected: number[];
  trimmed: {name: string; ends: ([number, number] | null)[]}[];
  rows: {name: string; axis: [low: number, high: number, rows: number]; counts: number[]; below: number; above: number}[];
}

/** The file that Python's tests read, too: see tests/contracts/histogram.py. */
const FILE = new URL('../../../tests/contracts/histogram.json', import.meta.url);
const contract = JSON.parse(readFileSync(FILE, 'utf8')) as Contract;

function named(name: string): {histogram: Histogram; bounds: Bounds} {
  const {buckets, counts, low, high} = contract.quantiles.find((one) => one.name === name)!;
  return {histogram: {buckets, counts}, bounds: {low: low ?? NaN, high: high ?? NaN}};
}

function expectClose(value: number, expected: number, size = Math.abs(expected)): void {
  if (Number.isNaN(expected)) expect(value).toBeNaN();
  else expect(Math.abs(value - expected)).toBeLessThanOrEqual(size * 1e-12);
}

describe('histograms as Python has them', () => {
  test.each(contract.edges)('bucket $bucket has the same edges', ({bucket, lower, upper}) => {
    expect([lowerEdge(bucket), upperEdge(bucket)]).toEqual([lower, upper]);
  });

  test.each(contract.bucket_of)('$value is in bucket $bucket', ({value, bucket}) => {
    expect(bucketOf(value)).toBe(bucket);
  });

  test.each(contract.quantiles)('$name has the same quantiles', ({name, values}) => {
    const {histogram, bounds} = named(name);
    quantiles(histogram, contract.shares, bounds).forEach((value, i) => expectClose(value, values[i] ?? NaN));
  });

  test.each(contract.sums)('$names add up to the same', ({names, buckets, counts}) => {
    expect(sumOf(names.map((name) => named(name).histogram))).toEqual({buckets, counts});
  });

  test.each(contract.trimmed)('$name spans the same without what is rejected', ({name, ends}) => {
    const {histogram, bounds} = named(name);
    contract.rejected.forEach((share, i) => {
      const {low, high} = trimmed(histogram, bounds, share);
      const size = Math.max(Math.abs(bounds.low), Math.abs(bounds.high)) * 10;
      [low, high].forEach((end, side) => expectClose(end, ends[i]?.[side] ?? NaN, size));
    });
  });

  test.each(contract.rows)('$name has the same rows on the axis $axis', ({name, axis: [low, high, rows], counts, below, above}) => {
    const {histogram, bounds} = named(name);
    const grid = rowGrid(linearScale({low, high}), rows);
    const found = rebin(histogram, bounds, grid);
    const all = [found.below, ...counts.map((_, row) => countIn(found, row, grid)), found.above];
    const elements = [...Array.from(histogram.counts), 1].reduce((sum, count) => sum + count);
    all.forEach((count, i) => expectClose(count, [below, ...counts, above][i]!, elements));
  });
});

test('the quantiles stand in pairs around the median', () => {
  expect(QUANTILES.map((share, i) => share + QUANTILES.at(-1 - i)!)).toEqual(QUANTILES.map(() => 1));
});
