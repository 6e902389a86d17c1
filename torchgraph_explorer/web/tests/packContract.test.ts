import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import {unpack} from '../src/api/pack';

/** The file that the server's tests write and read: see tests/contracts/pack.py. */
const FILE = new URL('../../../tests/contracts/pack.bin', import.meta.url);

interface Content {
  meta: Record<string, unknown>;
  arrays: Record<string, {dtype: string; shape: number[]; values: (number | string | null)[]}>;
}

const CONTENT = JSON.parse(readFileSync(new URL('./pack.json', FILE), 'utf8')) as Content;

describe("the server's binary answer", () => {
  const packed = unpack(new Uint8Array(readFileSync(FILE)).buffer);

  test('has the meta data that it was given', () => {
    expect(packed.meta).toEqual(CONTENT.meta);
    expect([...packed.arrays.keys()]).toEqual(Object.keys(CONTENT.arrays));
  });

  test.each(Object.entries(CONTENT.arrays))('has the numbers of %s', (name, {shape, values}) => {
    const array = packed.arrays.get(name);
    expect(array?.shape).toEqual(shape);
    expect(Array.from(array?.values ?? [])).toEqual(values.map((value) => (value === null ? NaN : Number(value))));
  });
});
