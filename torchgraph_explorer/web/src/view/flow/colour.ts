/** Signed numbers as colours, from the stylesheet's diverging scale. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {followPalette} from '../../charts/palette';
import {placeOnRamp, rampOf, rgbFrom} from '../../tensors/shade';

const STEPS = 511;

export interface Colours {
  /** `STEPS` colours, from the most negative to the most positive, as bytes r, g, b, a. */
  table: Uint8ClampedArray;
  /** `STEPS` colours, from zero to the largest, for maps without negative values. */
  sequential: Uint8ClampedArray;
  negative: string;
  positive: string;
  nonfinite: string;
  mark: string;
  surface: string;
}

/** Colours between the stops, which are given as `#rrggbb`. */
export function tableOf(stops: readonly string[]): Uint8ClampedArray {
  return Uint8ClampedArray.from(rampOf(stops.map(rgbFrom), STEPS).flatMap((rgb) => [...rgb, 255]));
}

/** The place in the table of a value, for values from `-largest`, or from 0 on, to `largest`; -1 for NaN and infinity. */
export function stepOf(value: number, largest: number, isSigned = true): number {
  if (!Number.isFinite(value)) return -1;
  const share = largest > 0 ? value / largest : 0;
  return Math.round(placeOnRamp(isSigned ? (share + 1) / 2 : share, isSigned) * (STEPS - 1));
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
    const stops = (name: string): string[] => [0, 1, 2, 3, 4].map((i) => read(`--${name}-${i}`));
    return {
      table: tableOf(stops('div')),
      sequential: tableOf(stops('seq')),
      negative: read('--div-0'),
      positive: read('--div-4'),
      nonfinite: read('--chart-nonfinite'),
      mark: read('--ink'),
      surface: read('--surface'),
    };
  }));
}
