/** Whether the x-ray is shown: where nothing is pinned, unless the user chose otherwise. */

import {computed} from '@preact/signals';
import * as choices from '../state/choices';

export const isXrayShown = computed(() => choices.xray.value ?? choices.pins.value.length === 0);

/** What is pressed in the x-ray leads to panels, which would take its place: it stays beside them. */
export function keepXray(): void {
  choices.xray.value = true;
}
