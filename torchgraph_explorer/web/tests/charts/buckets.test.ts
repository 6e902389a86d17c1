import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';

import {bucketOf, lowerEdge, upperEdge} from '../../src/histogram/buckets';
import {quantiles, QUANTILES} from '../../src/histogram/histogram';

interface Contract {
  edges: {bucket: number; lower: number; upper: number}[];
  bucket_of: {value: number; bucket: number}[];
  shares: number[];
  quantiles: {name: string; buckets: number[]; counts: number[]; low: number | null; high: number | null; values: (number | null)[]}[];
}

const FILE = new URL('../../../../tests/contracts/buckets.json', import.meta.url);
const contract = JSON.parse(readFileSync(FILE, 'utf8')) as Contract;

describe('buckets as Python has them', () => {
  test.each(contract.edges)('bucket $bucket has the same edges', ({bucket, lower, upper}) => {
    expect([lowerEdge(bucket), upperEdge(bucket)]).toEqual([lower, upper]);
  });

  test.each(contract.bucket_of)('$value is in bucket $bucket', ({value, bucket}) => {
    expect(bucketOf(value)).toBe(bucket);
  });

  test.each(contract.quantiles)('$name has the same quantiles', ({buckets, counts, low, high, values}) => {
    const found = quantiles({buckets, counts}, contract.shares, {low: low ?? NaN, high: high ?? NaN});
    found.forEach((value, i) => {
      const expected = values[i] ?? NaN;
      if (Number.isNaN(expected)) expect(value).toBeNaN();
      else expect(Math.abs(value - expected)).toBeLessThanOrEqual(Math.abs(expected) * 1e-12);
    });
  });
});

test('the quantiles stand in pairs around the median', () => {
  expect(QUANTILES.map((share, i) => share + QUANTILES.at(-1 - i)!)).toEqual(QUANTILES.map(() => 1));
});
