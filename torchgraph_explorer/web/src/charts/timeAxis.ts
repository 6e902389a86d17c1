/** The shared time axis: which number each frame stands at, from where to where, and its ticks. */

import {bisector, ticks as roundNumbers} from 'd3-array';
import {scaleTime} from 'd3-scale';

import {clockNumber, clockNumbers, stepNumbers} from './format';

export type TimeKind = 'step' | 'clock' | 'wall';

/** When each frame of a model was, one entry per frame. */
export interface FrameTimes {
  steps: ArrayLike<number>;
  /** Seconds since the epoch. */
  times: ArrayLike<number>;
  /** The second time axis; null where a frame has none. */
  clock: ArrayLike<number | null>;
}

/** A time axis. */
export interface TimeAxis {
  kind: TimeKind;
  steps: ArrayLike<number>;
  /** The number of each frame on the axis, in frame order; NaN where it has none. */
  values: Float64Array;
  /** The ends: half a usual gap before the first frame and after the last. */
  low: number;
  high: number;
}

/** The axis that all strips share. A clock axis without any clock value falls back to steps. */
export function timeAxis(kind: TimeKind, frames: FrameTimes): TimeAxis {
  const values = valuesOf(kind, frames);
  const {steps} = frames;
  const sorted = values.filter(Number.isFinite).sort();
  if (sorted.length === 0) return kind === 'clock' ? timeAxis('step', frames) : {kind, steps, values, low: 0, high: 1};
  const room = usualGap(sorted) / 2;
  return {kind, steps, values, low: sorted[0]! - room, high: sorted[sorted.length - 1]! + room};
}

function valuesOf(kind: TimeKind, {steps, times, clock}: FrameTimes): Float64Array {
  const source = {step: steps, wall: times, clock}[kind];
  return Float64Array.from({length: steps.length}, (_, frame) => source[frame] ?? NaN);
}

/** The median distance of neighbouring frames that differ; 1 when there are none. */
function usualGap(sorted: Float64Array): number {
  const gaps = sorted.subarray(1).map((value, i) => value - sorted[i]!);
  const positive = gaps.filter((gap) => gap > 0).sort();
  return positive[positive.length >> 1] ?? 1;
}

/** The pixel of each frame on an axis of `width` pixels; NaN for a frame without a place. */
export function framePixels(axis: TimeAxis, width: number): Float64Array {
  return axis.values.map((value) => timePixel(axis, width, value));
}

/** The pixel of a number on the axis. */
export function timePixel({low, high}: TimeAxis, width: number, value: number): number {
  return ((value - low) / (high - low)) * width;
}

/** Frames sorted by where they stand, for finding the nearest; made once per axis and width. */
export interface FrameFinder {
  /** The frame nearest to a pixel, the latest of several; null without frames. */
  nearest(pixel: number): number | null;
}

/** Prepares finding frames by pixel. */
export function frameFinder(pixels: Float64Array): FrameFinder {
  const order = Array.from(pixels.keys()).filter((frame) => Number.isFinite(pixels[frame]!));
  order.sort((a, b) => pixels[a]! - pixels[b]! || a - b);
  const centre = bisector((frame: number) => pixels[frame]!).center;
  return {
    nearest(pixel) {
      if (order.length === 0) return null;
      let at = centre(order, pixel);
      while (at + 1 < order.length && pixels[order[at + 1]!] === pixels[order[at]!]) at++;
      return order[at]!;
    },
  };
}

/** A labelled place on an axis. */
export interface Tick {
  value: number;
  label: string;
}

/** Round places on the axis, about `count` of them. */
export function timeTicks(axis: TimeAxis, count: number): Tick[] {
  return axis.kind === 'wall' ? wallTicks(axis, count) : numberTicks(axis, count);
}

function numberTicks({kind, low, high}: TimeAxis, count: number): Tick[] {
  const found = roundNumbers(low, high, Math.max(1, count)).filter((value) => value >= 0 || low < -1);
  const whole = kind === 'step' ? found.filter(Number.isInteger) : found;
  const labels = kind === 'step' ? stepNumbers(whole) : clockNumbers(whole);
  return whole.map((value, i) => ({value, label: labels[i]!}));
}

function wallTicks({low, high}: TimeAxis, count: number): Tick[] {
  const scale = scaleTime([low * 1000, high * 1000], [0, 1]);
  const label = scale.tickFormat(count);
  return scale.ticks(count).map((date) => ({value: date.getTime() / 1000, label: label(date)}));
}

/** What a frame is called on the axis and in tooltips: `step 600 · epoch 3`. */
export function frameLabel(frames: FrameTimes, frame: number, clockName: string | null): string {
  const step = `step ${frames.steps[frame]?.toLocaleString('en')}`;
  const clock = frames.clock[frame] ?? null;
  return clock === null ? step : `${step} · ${clockName ?? 'clock'} ${clockNumber(clock)}`;
}
