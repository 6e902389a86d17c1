/** Where frames stand on a time axis, worked out once for all strips that are equally wide. */

import {columnsOf, type Columns} from './columns';
import {frameFinder, framePixels, timePixel, type FrameFinder, type TimeAxis} from './timeAxis';

export interface FramePositions {
  /** Pixel of each frame within the plot. */
  pixels: Float64Array;
  /** Pixel at which the values of a frame's bin are drawn. */
  middles: Float64Array;
  /** Bins are numbered from 0; the number of each frame's. */
  binOf: (frame: number) => number;
  columns: Columns;
  finder: FrameFinder;
}

interface Wanted {
  width: number;
  /** Steps of a bin; 1 for frames each on their own. */
  unit: number;
}

const known = new WeakMap<TimeAxis, Map<string, FramePositions>>();

/** The positions of all frames of an axis, for a plot's width and a history's bins. */
export function positionsOf(axis: TimeAxis, wanted: Wanted): FramePositions {
  const ofAxis = known.get(axis) ?? new Map<string, FramePositions>();
  known.set(axis, ofAxis);
  const name = `${wanted.width} ${wanted.unit}`;
  const positions = ofAxis.get(name) ?? workOut(axis, wanted);
  ofAxis.set(name, positions);
  return positions;
}

function workOut(axis: TimeAxis, {width, unit}: Wanted): FramePositions {
  const pixels = framePixels(axis, width);
  const finder = frameFinder(pixels);
  const own = axis.own ?? axis;
  const ends = {left: timePixel(axis, width, own.low), right: timePixel(axis, width, own.high)};
  if (unit === 1) return {pixels, middles: pixels, binOf: (frame) => frame, columns: columnsOf(pixels, width, ends), finder};
  const bins = binsOf(axis.steps, unit);
  const ofBins = middlesOf(bins, pixels);
  const columns = columnsOf(ofBins, width, ends);
  return {
    pixels,
    middles: Float64Array.from(bins, (bin) => ofBins[bin]!),
    binOf: (frame) => bins[frame] ?? NaN,
    columns: {...columns, of: Int32Array.from(bins, (bin) => columns.of[bin]!)},
    finder,
  };
}

/** The number of each frame's bin. Bins are of `unit` steps, counted from step 0; those without a frame have no number. */
function binsOf(steps: ArrayLike<number>, unit: number): Int32Array {
  const bins = new Int32Array(steps.length);
  const isNew = (frame: number): boolean => Math.floor(steps[frame]! / unit) !== Math.floor(steps[frame - 1]! / unit);
  for (let frame = 1; frame < bins.length; frame++) bins[frame] = bins[frame - 1]! + (isNew(frame) ? 1 : 0);
  return bins;
}

/** The pixel in the middle of each bin's frames; NaN when none of them is on the axis. */
function middlesOf(bins: Int32Array, pixels: Float64Array): Float64Array {
  const count = (bins.at(-1) ?? -1) + 1;
  const [low, high] = [new Float64Array(count).fill(Infinity), new Float64Array(count).fill(-Infinity)];
  bins.forEach((bin, frame) => {
    if (Number.isNaN(pixels[frame])) return;
    low[bin] = Math.min(low[bin]!, pixels[frame]!);
    high[bin] = Math.max(high[bin]!, pixels[frame]!);
  });
  return low.map((pixel, bin) => (pixel + high[bin]!) / 2);
}
