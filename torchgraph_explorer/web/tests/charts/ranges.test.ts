import {readFileSync} from 'node:fs';
import {expect, test} from 'vitest';
import {extentOfEnds} from '../../src/charts/extent';

interface Case {
  name: string;
  reject: number;
  ends: (number | null)[][];
  range: [number, number] | null;
}

const cases = JSON.parse(readFileSync(new URL('../../../../tests/contracts/ranges.json', import.meta.url), 'utf8')) as Case[];

test.each(cases)('tests/contracts/ranges.json: the range over time of $name', ({reject, ends, range}) => {
  const found = extentOfEnds(Float64Array.from(ends.flat().map((end) => end ?? NaN)), reject);
  expect(found && [found.low, found.high]).toEqual(range);
});
