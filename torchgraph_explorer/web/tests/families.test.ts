import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import {FAMILIES, familyOf} from '../src/graph/families';

const contract = JSON.parse(readFileSync(new URL('../../../tests/contracts/families.json', import.meta.url), 'utf8')) as Record<
  string,
  Record<string, string>
>;

describe.each(Object.entries(contract))('tests/contracts/families.json, %s', (where, cases) => {
  test.each(Object.entries(cases))('%s is of %s', (className, family) => {
    expect(familyOf(className, where === 'with an inside')).toBe(family);
  });
});

test('every family of the contract is in the legend', () => {
  const named = new Set(Object.values(contract).flatMap((cases) => Object.values(cases)));
  expect([...named].sort()).toEqual([...FAMILIES].sort());
});
