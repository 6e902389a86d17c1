/** What the strips of a model are shown with. */

import {computed, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';

import type {Setting} from '../../charts/setting';
import type {TipContent} from '../../charts/Tip';
import type {Model} from '../../model/model';
import {timesOf} from '../state/axis';
import * as choices from '../state/choices';
import {makeRoom} from '../state/room';
import * as shown from '../state/shown';
import {tellScale} from './shownScales';

/** What the tooltip of all strips says; null while the pointer is on none. */
export const tip: Signal<TipContent | null> = signal(null);

/** The setting of a model's strips. They share their time axis, which has all frames of the model. */
export function settingOf(model: Model): Setting {
  const {frames, axis} = timesOf(model);
  return {
    options: shown.chart,
    frames,
    clockName: computed(() => model.data.value?.session?.clock ?? null),
    axis,
    frame: model.frame,
    pointed: choices.pointedStep,
    tip,
    choose: (step) => (choices.step.value = step),
    onWidth: makeRoom,
    onScale: tellScale,
  };
}
