/**
 * The fixed buckets in which every histogram is counted, as in `torchgraph_explorer/histogram.py`.
 *
 * Bucket `b > 0` holds `[edge(b), edge(b + 1))`, where `edge(b)` is the float32 whose bit pattern is `b << 21`; bucket `-b` is its
 * mirror image; bucket 0 holds zero and what is too small to matter (below 2**-128).
 */

const SHIFT = 21;

/** The bucket of the largest finite float32; `-LAST_BUCKET` is the smallest one. */
export const LAST_BUCKET = 1019;

const MAGNITUDES = magnitudes();

function magnitudes(): Float64Array {
  const bits = Uint32Array.from({length: LAST_BUCKET + 2}, (_, number) => number << SHIFT);
  const edges = Float64Array.from(new Float32Array(bits.buffer));
  edges[LAST_BUCKET + 1] = 2 ** 128; // as a float32 it would be infinite
  return edges;
}

/** The bucket of a finite number, taken as a float32. */
export function bucketOf(value: number): number {
  const bits = new Uint32Array(Float32Array.of(Math.abs(value)).buffer)[0]!;
  const magnitude = bits >>> SHIFT;
  return value < 0 ? 0 - magnitude : magnitude;
}

/** The smallest value of a bucket (for bucket 0, minus its reach). */
export function lowerEdge(bucket: number): number {
  return bucket > 0 ? MAGNITUDES[bucket]! : -MAGNITUDES[1 - bucket]!;
}

/** Where a bucket ends, towards larger values. The last bucket ends at 2**128. */
export function upperEdge(bucket: number): number {
  return bucket >= 0 ? MAGNITUDES[bucket + 1]! : -MAGNITUDES[-bucket]!;
}
