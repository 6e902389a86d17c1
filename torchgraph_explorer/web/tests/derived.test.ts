import {readdirSync, readFileSync} from 'node:fs';
import {expect, test} from 'vitest';

const SRC = new URL('../src/', import.meta.url);
const KEEPS_THE_FIRST = /\buse(Computed|SignalEffect)\b/;

test("Signals' own hooks, which keep the first closure, are used by `charts/derived.ts` alone, which has others", () => {
  const files = readdirSync(SRC, {recursive: true, encoding: 'utf8'}).filter((name) => /\.tsx?$/.test(name));
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((name) => KEEPS_THE_FIRST.test(readFileSync(new URL(name, SRC), 'utf8')))).toEqual(['charts/derived.ts']);
});
