/** The time axis that all strips share. */

import {computed} from '@preact/signals';

import {chart, data} from '../state/store';
import {timeAxis} from './timeAxis';

const NOTHING = {steps: [], times: [], clock: []};

/** All frames of the model on the axis that the user chose. */
export const sharedAxis = computed(() => timeAxis(chart.value.time, data.value ?? NOTHING));
