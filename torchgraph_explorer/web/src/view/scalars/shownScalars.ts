/** Whether there are scalars or notes, and whether they are shown: where nothing is pinned, unless the user chose otherwise. */

import {computed} from '@preact/signals';
import * as choices from '../state/choices';
import * as shown from '../state/shown';

const data = computed(() => shown.model.value?.scalars.data.value ?? null);

export const hasScalars = computed(() => data.value !== null && data.value.scalars.length + data.value.notes.length > 0);

export const areScalarsShown = computed(() => hasScalars.value && (choices.scalars.value ?? choices.pins.value.length === 0));
