/** Signed numbers as colours, from the stylesheet's diverging scale. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {followPalette} from '../../charts/palette';

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
  const parsed = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  const table = new Uint8ClampedArray(STEPS * 4);
  for (let i = 0; i < STEPS; i++) {
    const at = (i / (STEPS - 1)) * (parsed.length - 1);
    const left = Math.min(Math.floor(at), parsed.length - 2);
    const share = at - left;
    const mixed = [0, 1, 2].map((k) => parsed[left]![k]! * (1 - share) + parsed[left + 1]![k]! * share);
    table.set([...mixed, 255], i * 4);
  }
  return table;
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
