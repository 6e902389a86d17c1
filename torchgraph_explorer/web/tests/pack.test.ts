import {describe, expect, test} from 'vitest';
import {arrayOf, PackError, unpack} from '../src/api/pack';

/** A binary answer as `http_api.md` says, written byte by byte. */
function answer(head: object, arrays: readonly (readonly [number, ArrayBufferView])[]): ArrayBuffer {
  const json = new TextEncoder().encode(JSON.stringify(head));
  const base = Math.ceil((4 + json.length) / 8) * 8;
  const end = Math.max(0, ...arrays.map(([offset, values]) => offset + values.byteLength));
  const bytes = new Uint8Array(base + end);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  for (const [offset, values] of arrays) {
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), base + offset);
  }
  return bytes.buffer;
}

const STATISTICS = {name: 'statistics', dtype: 'float32', shape: [2, 2], offset: 8};
const SERIES = {name: 'series', dtype: 'uint32', shape: [2], offset: 0};
const GOOD = answer({meta: {epoch: 3}, arrays: [SERIES, STATISTICS]}, [
  [0, new Uint32Array([7, 9])],
  [8, new Float32Array([1, 2, NaN, 4])],
]);

describe('a binary answer', () => {
  test('gives back its meta data and arrays', () => {
    const packed = unpack<{epoch: number}>(GOOD);
    expect(packed.meta.epoch).toBe(3);
    expect(arrayOf(packed, 'series', Uint32Array)).toEqual(new Uint32Array([7, 9]));
    expect(packed.arrays.get('statistics')).toEqual({shape: [2, 2], values: new Float32Array([1, 2, NaN, 4])});
  });

  test('may hold empty arrays', () => {
    const empty = answer({meta: {}, arrays: [{name: 'a', dtype: 'int16', shape: [0], offset: 0}]}, []);
    expect(arrayOf(unpack(empty), 'a', Int16Array)).toEqual(new Int16Array(0));
  });

  test.each([
    ['without a head', new ArrayBuffer(2), /2 bytes has no head/],
    ['cut in its head', GOOD.slice(0, 20), /20 bytes says that its head has/],
    ['cut in its arrays', GOOD.slice(0, GOOD.byteLength - 4), /array statistics reaches past the end/],
    ['of an unknown dtype', answer({meta: {}, arrays: [{...SERIES, dtype: 'int64'}]}, []), /series is of dtype int64, not one of/],
  ])('%s is refused', (_, buffer, message) => {
    expect(() => unpack(buffer)).toThrow(message);
    expect(() => unpack(buffer)).toThrow(PackError);
  });

  test('says which array is missing', () => {
    expect(() => arrayOf(unpack(GOOD), 'counts', Uint32Array)).toThrow('binary answer has no Uint32Array called counts');
  });
});
