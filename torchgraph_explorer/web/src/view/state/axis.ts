/** The time axis that strips, scalars and the time bar of a model share. */

import {computed, effect} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {interpolated} from '../../charts/interpolate';
import {scalarOf, timeAxis, type FrameTimes, type TimeAxis, type TimeKind} from '../../charts/timeAxis';
import {placing, type Place, type ScalarPoints} from '../../charts/timePlaces';
import type {Model} from '../../model/model';
import type {ScalarData} from '../../model/scalars';
import type {Option} from '../controls/Select';
import * as choices from './choices';
import * as shown from './shown';

const NO_FRAMES: FrameTimes = {steps: [], times: [], clock: []};

export interface ModelTimes {
  /** When each frame was, and where it is on the axis if that is a scalar. */
  frames: ReadonlySignal<FrameTimes>;
  axis: ReadonlySignal<TimeAxis>;
  /** Where any step is on it. */
  place: ReadonlySignal<Place>;
}

const known = new WeakMap<Model, ModelTimes>();

/** Worked out once a model. */
export function timesOf(model: Model): ModelTimes {
  const found = known.get(model) ?? workOut(model);
  known.set(model, found);
  return found;
}

function workOut(model: Model): ModelTimes {
  const kind = computed(() => shown.chart.value.time);
  const points = computed(() => pointsOf(model.scalars.data.value, scalarOf(kind.value)));
  const frames = computed(() => framesOf(model, points.value));
  const axis = computed(() => timeAxis(kind.value, frames.value));
  // Without frames the axis is of steps only where nothing is known of the chosen one.
  const inForce = computed(() => (frames.value.steps.length > 0 ? axis.value.kind : kind.value));
  return {frames, axis, place: computed(() => placing(inForce.value, frames.value, points.value))};
}

function framesOf(model: Model, points: ScalarPoints | null): FrameTimes {
  const data = model.data.value;
  if (data === null) return NO_FRAMES;
  const {steps, times, clock} = data;
  const start = times[0] ?? firstTime(model.scalars.data.value);
  if (points === null) return {steps, times, clock, start};
  return {steps, times, clock, start, scalar: steps.map((step) => interpolated(points.steps, points.values, step))};
}

/** Where there are no frames. */
function firstTime(data: ScalarData | null): number {
  return Math.min(...[...(data?.values.values() ?? [])].flatMap(({time}) => (time.length > 0 ? [time[0]!] : [])), Date.now() / 1000);
}

/** The points of a scalar that never falls. Of a bin, the least value is at its first step, and the largest at its last. */
function pointsOf(data: ScalarData | null, name: string | null): ScalarPoints | null {
  const number = data?.scalars.findIndex((one) => one.name === name && one.label === undefined && one.is_axis) ?? -1;
  const values = data?.values.get(number);
  if (values === undefined) return null;
  const [steps, found]: [number[], number[]] = [[], []];
  values.step.forEach((step, i) => {
    steps.push(step);
    found.push(values.low[i]!);
    if (values.last[i] === step) return;
    steps.push(values.last[i]!);
    found.push(values.high[i]!);
  });
  return {steps, values: found};
}

/** The axes that the model on show can have. */
export const timeOptions: ReadonlySignal<Option[]> = computed(() => {
  const clock = shown.data.value?.session?.clock;
  const scalars = (shown.model.value?.scalars.data.value?.scalars ?? []).filter((one) => one.is_axis && one.label === undefined);
  return [
    {value: 'step', label: 'Step'},
    ...(clock ? [{value: 'clock', label: clock}] : []),
    {value: 'elapsed', label: 'Time since start'},
    {value: 'wall', label: 'Wall time'},
    ...scalars.map(({name}) => ({value: `scalar:${name}`, label: name})),
  ];
});

export function chooseTime(kind: string): void {
  choices.setChart({time: kind as TimeKind});
}

/** The scalar behind the time bar; null for none. Without a choice, the first whose name ends in `loss`, else the first. */
export const curveName: ReadonlySignal<string | null> = computed(() => {
  const names = (shown.model.value?.scalars.data.value?.scalars ?? []).map(({name}) => name);
  const chosen = choices.curve.value;
  if (chosen === '') return null;
  if (chosen !== null && names.includes(chosen)) return chosen;
  return names.find((name) => /loss$/i.test(name)) ?? names[0] ?? null;
});

/** Has the values of the scalars fetched that the axis and the time bar show. */
export function startFollowingScalars(): void {
  for (const name of [computed(() => scalarOf(shown.chart.value.time)), curveName]) {
    effect(() => {
      const [model, wanted] = [shown.model.value, name.value];
      return model === null || wanted === null ? undefined : model.scalars.want(wanted);
    });
  }
}
