/** The theme's colours for values, read again whenever it changes. */

import {signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {rgbFrom} from '../../tensors/shade';
import type {Rgb, Shades} from '../../tensors/shade';

export interface Inks extends Shades {
  ink: string;
  label: string;
  line: string;
  surface: string;
  accent: string;
  bad: string;
  badInk: string;
  font: string;
}

let followed: ReadonlySignal<Inks> | null = null;

export function followInks(): ReadonlySignal<Inks> {
  if (followed !== null) return followed;
  const inks = signal(read());
  const update = (): void => void (inks.value = read());
  new MutationObserver(update).observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
  return (followed = inks);
}

function read(): Inks {
  const style = getComputedStyle(document.documentElement);
  const text = (name: string): string => style.getPropertyValue(name).trim();
  const ramp = (name: string): Rgb[] => [0, 1, 2, 3, 4].map((i) => rgbFrom(text(`--${name}-${i}`)));
  return {
    diverging: ramp('div'),
    sequential: ramp('seq'),
    nan: rgbFrom(text('--bad')),
    positiveInfinity: rgbFrom(text('--pin-3')),
    negativeInfinity: rgbFrom(text('--pin-4')),
    ink: text('--ink'),
    label: text('--ink-3'),
    line: text('--line-strong'),
    surface: text('--surface'),
    accent: text('--accent'),
    bad: text('--bad'),
    badInk: text('--bad-ink'),
    font: `10px ${text('--font')}`,
  };
}
