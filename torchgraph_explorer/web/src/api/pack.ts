/** Binary answers: a little-endian uint32 `n`, `n` bytes of JSON, zeros up to a multiple of 8, then the arrays. */

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
} as const;
type Dtype = keyof typeof ARRAYS;

export interface Packed<Meta = Record<string, unknown>> {
  meta: Meta;
  arrays: Map<string, PackedArray>;
}

export interface PackedArray {
  shape: number[];
  values: InstanceType<(typeof ARRAYS)[Dtype]>;
}

interface Entry {
  name: string;
  dtype: string;
  shape: number[];
  offset: number;
}

/** The binary answer cannot be read; the message says where. */
export class PackError extends Error {}

/** Views on the arrays of a binary answer. Nothing is copied: they keep `buffer` alive. */
export function unpack<Meta = Record<string, unknown>>(buffer: ArrayBuffer): Packed<Meta> {
  if (buffer.byteLength < 4) throw new PackError(`binary answer of ${buffer.byteLength} bytes has no head`);
  const length = new DataView(buffer).getUint32(0, true);
  if (4 + length > buffer.byteLength) {
    throw new PackError(`binary answer of ${buffer.byteLength} bytes says that its head has ${length}`);
  }
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as {meta: Meta; arrays: Entry[]};
  const base = Math.ceil((4 + length) / 8) * 8;
  return {meta: head.meta, arrays: new Map(head.arrays.map((entry) => [entry.name, view(buffer, base, entry)]))};
}

function view(buffer: ArrayBuffer, base: number, {name, dtype, shape, offset}: Entry): PackedArray {
  if (!(dtype in ARRAYS)) throw new PackError(`array ${name} is of dtype ${dtype}, not one of ${Object.keys(ARRAYS).join(', ')}`);
  const type = ARRAYS[dtype as Dtype];
  const size = shape.reduce((product, dimension) => product * dimension, 1);
  if (base + offset + size * type.BYTES_PER_ELEMENT > buffer.byteLength) {
    throw new PackError(`array ${name} reaches past the end of the binary answer`);
  }
  return {shape, values: new type(buffer, base + offset, size)};
}

/** The values of the array `name`, which must be of the given type. */
export function arrayOf<T>(packed: Packed<unknown>, name: string, type: new (...args: never[]) => T): T {
  const values = packed.arrays.get(name)?.values;
  if (!(values instanceof type)) throw new PackError(`binary answer has no ${type.name} called ${name}`);
  return values;
}
