/** The shared time axis: which number each frame stands at, from where to where, and its ticks. */

import {bisector, ticks as roundNumbers} from 'd3-array';
import {scaleTime} from 'd3-scale';

import {stepName} from '../numberText';
import {clockNumber, clockNumbers, stepNumbers} from './format';

/** `elapsed` is the wall time since the start; `scalar:tokens` the scalar of that name. */
export type TimeKind = 'step' | 'clock' | 'wall' | 'elapsed' | `scalar:${string}`;

/** The name of the scalar that an axis shows; null for another one. */
export function scalarOf(kind: TimeKind): string | null {
  return kind.startsWith('scalar:') ? kind.slice('scalar:'.length) : null;
}

/** When each frame of a model was, one entry per frame. */
export interface FrameTimes {
  steps: ArrayLike<number>;
  /** Seconds since the epoch. */
  times: ArrayLike<number>;
  /** The second time axis; null where a frame has none. */
  clock: ArrayLike<number | null>;
  /** When training began, in seconds since the epoch. */
  start?: number;
  /** The scalar of the axis, if that is one; NaN where it is not known. */
  scalar?: ArrayLike<number>;
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
  /** The ends of these frames where the axis is longer, which it is for several runs. */
  own?: {low: number; high: number};
}

/** The axis that all strips share. An axis of a clock or scalar without any value falls back to steps. */
export function timeAxis(kind: TimeKind, frames: FrameTimes): TimeAxis {
  const values = valuesOf(kind, frames);
  const {steps} = frames;
  const sorted = values.filter(Number.isFinite).sort();
  if (sorted.length === 0) return kind === 'clock' || scalarOf(kind) !== null ? timeAxis('step', frames) : {kind, steps, values, low: 0, high: 1};
  const room = usualGap(sorted) / 2;
  return {kind, steps, values, low: sorted[0]! - room, high: sorted[sorted.length - 1]! + room};
}

function valuesOf(kind: TimeKind, {steps, times, clock, scalar, start}: FrameTimes): Float64Array {
  const source = scalarOf(kind) === null ? {step: steps, wall: times, elapsed: times, clock}[kind as 'step'] : (scalar ?? []);
  const zero = kind === 'elapsed' ? (start ?? times[0] ?? 0) : 0;
  return Float64Array.from({length: steps.length}, (_, frame) => (source[frame] ?? NaN) - zero);
}

/** The median distance of neighbouring frames that differ; 1 when there are none. */
function usualGap(sorted: Float64Array): number {
  const gaps = sorted.subarray(1).map((value, i) => value - sorted[i]!);
  const positive = gaps.filter((gap) => gap > 0).sort();
  return positive[positive.length >> 1] ?? 1;
}

/** The pixel of each frame on an axis of `width` pixels; NaN for a frame that is not on the axis. */
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

/** A labelled value on an axis. */
export interface Tick {
  value: number;
  label: string;
}

/** Round values on the axis, about `count` of them. */
export function timeTicks(axis: Pick<TimeAxis, 'kind' | 'low' | 'high'>, count: number): Tick[] {
  if (axis.kind === 'elapsed') return elapsedTicks(axis, count);
  return axis.kind === 'wall' ? wallTicks(axis, count) : numberTicks(axis, count);
}

type Ends = Pick<TimeAxis, 'low' | 'high'>;

/** Seconds from which ticks are apart, in round amounts. */
const ROUND_SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

function elapsedTicks({low, high}: Ends, count: number): Tick[] {
  const least = (high - low) / Math.max(1, count);
  const gap = ROUND_SECONDS.find((seconds) => seconds >= least) ?? 86_400 * Math.ceil(least / 86_400);
  if (least < 0.5) return roundNumbers(low, high, count).filter((value) => value >= 0).map((value) => ({value, label: elapsedText(value)}));
  const first = Math.ceil(Math.max(0, low) / gap);
  return Array.from({length: Math.max(0, Math.floor(high / gap) - first + 1)}, (_, i) => (first + i) * gap).map((value) => ({value, label: elapsedText(value)}));
}

/** A duration: `2.5 s`, `1:30`, `2:00:00`. */
export function elapsedText(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  const two = (part: number): string => String(part).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

function numberTicks({kind, low, high}: Ends & {kind: TimeKind}, count: number): Tick[] {
  const found = roundNumbers(low, high, Math.max(1, count)).filter((value) => value >= 0 || low < -1);
  const whole = kind === 'step' ? found.filter(Number.isInteger) : found;
  const labels = kind === 'step' ? stepNumbers(whole) : clockNumbers(whole);
  return whole.map((value, i) => ({value, label: labels[i]!}));
}

function wallTicks({low, high}: Ends, count: number): Tick[] {
  const scale = scaleTime([low * 1000, high * 1000], [0, 1]);
  const label = scale.tickFormat(count);
  return scale.ticks(count).map((date) => ({value: date.getTime() / 1000, label: label(date)}));
}

/** What a frame is called on the axis and in tooltips: `step 600 · epoch 3`. */
export function frameLabel(frames: FrameTimes, frame: number, clockName: string | null): string {
  const step = stepName(frames.steps[frame] ?? 0);
  const clock = frames.clock[frame] ?? null;
  return clock === null ? step : `${step} · ${clockName ?? 'clock'} ${clockNumber(clock)}`;
}
