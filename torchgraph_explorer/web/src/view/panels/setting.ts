/** The time axis that all strips share. */

import {computed, signal} from '@preact/signals';

import {chart, data} from '../state/choices';
import {timeAxis} from '../../charts/timeAxis';

const NOTHING = {steps: [], times: [], clock: []};

/** All frames of the model on the axis that the user chose. */
export const sharedAxis = computed(() => timeAxis(chart.value.time, data.value ?? NOTHING));

const WIDEST = 2048;
const widest = signal(512);

/** Says how many pixels a strip has for its frames. */
export function makeRoom(pixels: number): void {
  if (pixels > widest.peek()) widest.value = Math.min(WIDEST, 2 ** Math.ceil(Math.log2(pixels)));
}

/** Bins that a history may have: their number doubles or halves, so that none of the widest strip's pixels goes without. */
export const mostBins = computed(() => 2 * widest.value);
