/** The stylesheet's colours as canvases need them, read again whenever the theme changes. */

import {signal, type ReadonlySignal} from '@preact/signals';

import {parseStops, ramp, rgbOf} from './ramp';

export interface Palette {
  /** 256 colours for the heat, from a trace to full strength. */
  heat: Uint8ClampedArray;
  /** What lies outside the axis. */
  rim: readonly [number, number, number];
  rimColour: string;
  ink: string;
  label: string;
  grid: string;
  zero: string;
  outline: string;
  nonfinite: string;
  series: string;
  /** Of what a rule does not allow. */
  limit: string;
  spike: string;
  surface: string;
  font: string;
}

/** The palette of the theme in force. */
function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const rim = rgbOf(parseStops(read('--chart-rim'))[0]!);
  return {
    heat: ramp(parseStops(read('--chart-heat'))),
    rim,
    rimColour: `rgb(${rim.join(' ')})`,
    ink: read('--ink'),
    label: read('--ink-3'),
    grid: read('--chart-grid'),
    zero: read('--chart-zero'),
    outline: read('--line-strong'),
    nonfinite: read('--chart-nonfinite'),
    series: read('--chart-ink'),
    limit: read('--caution'),
    spike: read('--chart-spike'),
    surface: read('--surface'),
    font: `10px ${read('--font') || 'sans-serif'}`,
  };
}

let followed: ReadonlySignal<Palette> | null = null;

/** The palette as a signal, which follows the `data-theme` of the page and the system's preference. */
export function followPalette(): ReadonlySignal<Palette> {
  if (followed !== null) return followed;
  const root = document.documentElement;
  const palette = signal(readPalette(root));
  const update = () => (palette.value = readPalette(root));
  new MutationObserver(update).observe(root, {attributes: true, attributeFilter: ['data-theme', 'class']});
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
  return (followed = palette);
}
