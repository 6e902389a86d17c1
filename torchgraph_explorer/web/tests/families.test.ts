import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import shared from '../../families.json';
import {FAMILIES, familyOf} from '../src/graph/families';

interface Case {
  class_name: string;
  has_inside: boolean;
  family: string;
}

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const cases = JSON.parse(read('../../../tests/contracts/families.json')) as Case[];

describe('tests/contracts/families.json', () => {
  test.each(cases)('$class_name, with an inside: $has_inside, is $family', ({class_name, has_inside, family}) => {
    expect(familyOf(class_name, has_inside)).toBe(family);
  });
});

test('the themes have the colours that the W&B chart has', () => {
  const themes = read('../src/styles/theme.css');
  const [light = '', dark = ''] = themes.split("[data-theme='dark']");
  const found = (theme: string) => Object.fromEntries([...theme.matchAll(/--family-(\w+): (#\w+);/g)].map(([, name, colour]) => [name, colour]));
  const colours = Object.entries(shared.colours);
  expect(found(light)).toEqual(Object.fromEntries(colours.map(([name, both]) => [name, both.light])));
  expect(found(dark)).toEqual(Object.fromEntries(colours.map(([name, both]) => [name, both.dark])));
  expect(FAMILIES).toEqual(Object.keys(found(light)));
});
