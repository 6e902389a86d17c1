/** The colours of cells, from the theme. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {rgbFrom} from '../../tensors/shade';
import {colourTable} from '../../xray/scale';
import type {Rgb} from '../../xray/scale';
import {followInks} from '../tensors/shades';
import {scale} from './store';

export const STOPS = [0, 1, 2, 3, 4].map((stop) => `--xray-${stop}`);

/** Read when the theme changes. */
const ramp: ReadonlySignal<Rgb[]> = computed(() => {
  void followInks().value;
  const style = getComputedStyle(document.documentElement);
  return STOPS.map((name) => rgbFrom(style.getPropertyValue(name).trim()));
});

const zero: ReadonlySignal<Rgb> = computed(() => {
  void followInks().value;
  return rgbFrom(getComputedStyle(document.documentElement).getPropertyValue('--xray-zero').trim());
});

/** A colour for each code. */
export const colours: ReadonlySignal<Uint32Array> = computed(() => colourTable(scale.value, ramp.value, {bad: followInks().value.nan, zero: zero.value}));
