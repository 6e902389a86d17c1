/** What the strips of a model are shown with. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';

import type {Setting} from '../../charts/setting';
import {timeAxis} from '../../charts/timeAxis';
import type {FrameTimes} from '../../charts/timeAxis';
import type {TipContent} from '../../charts/Tip';
import type {Model} from '../../model/model';
import * as choices from '../state/choices';
import {makeRoom} from '../state/room';
import * as shown from '../state/shown';
import {tellScale} from './shownScales';

/** What the tooltip of all strips says; null while the pointer is on none. */
export const tip: Signal<TipContent | null> = signal(null);

const NO_FRAMES: FrameTimes = {steps: [], times: [], clock: []};

/** The setting of a model's strips. They share their time axis, which has all frames of the model. */
export function settingOf(model: Model): Setting {
  const frames: ReadonlySignal<FrameTimes> = computed(() => model.data.value ?? NO_FRAMES);
  return {
    options: shown.chart,
    frames,
    clockName: computed(() => model.data.value?.session?.clock ?? null),
    axis: computed(() => timeAxis(shown.chart.value.time, frames.value)),
    frame: model.frame,
    pointed: choices.pointedStep,
    tip,
    choose: (step) => (choices.step.value = step),
    onWidth: makeRoom,
    onScale: tellScale,
  };
}
