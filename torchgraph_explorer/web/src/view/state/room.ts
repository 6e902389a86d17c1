/** How many pixels the widest strip has, and so how finely histories are worth fetching. */

import {computed, signal} from '@preact/signals';

const WIDEST = 2048;
const widest = signal(512);

/** Says how many pixels a strip has for its frames. */
export function makeRoom(pixels: number): void {
  if (pixels > widest.peek()) widest.value = Math.min(WIDEST, 2 ** Math.ceil(Math.log2(pixels)));
}

/** Bins that a history may have: their number doubles or halves, so that none of the widest strip's pixels goes without. */
export const mostBins = computed(() => 2 * widest.value);
