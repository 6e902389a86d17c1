/** Signed numbers as colours, from the stylesheet's diverging scale. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {followPalette} from '../../charts/palette';
import {rampOf, rgbFrom} from '../../tensors/shade';

const STEPS = 511;

export interface Colours {
  /** `STEPS` colours, from the most negative to the most positive, as bytes r, g, b, a. */
  table: Uint8ClampedArray;
  negative: string;
  positive: string;
  nonfinite: string;
  mark: string;
  surface: string;
}

/** Colours between the stops, which are given as `#rrggbb`. */
export function diverging(stops: readonly string[]): Uint8ClampedArray {
  return Uint8ClampedArray.from(rampOf(stops.map(rgbFrom), STEPS).flatMap((rgb) => [...rgb, 255]));
}

/** The place in the table of a value, for values between `-largest` and `largest`; -1 for NaN and infinity. */
export function stepOf(value: number, largest: number): number {
  if (!Number.isFinite(value)) return -1;
  const share = largest > 0 ? Math.max(-1, Math.min(1, value / largest)) : 0;
  return Math.round(((share + 1) / 2) * (STEPS - 1));
}

let followed: ReadonlySignal<Colours> | null = null;

/** The colours of the theme in force. */
export function followColours(): ReadonlySignal<Colours> {
  if (followed !== null) return followed;
  const palette = followPalette();
  return (followed = computed(() => {
    void palette.value;
    const style = getComputedStyle(document.documentElement);
    const read = (name: string) => style.getPropertyValue(name).trim();
    const stops = [0, 1, 2, 3, 4].map((i) => read(`--div-${i}`));
    return {
      table: diverging(stops),
      negative: read('--div-0'),
      positive: read('--div-4'),
      nonfinite: read('--chart-nonfinite'),
      mark: read('--ink'),
      surface: read('--surface'),
    };
  }));
}
