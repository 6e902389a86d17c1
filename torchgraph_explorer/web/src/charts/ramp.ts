/** Colour ramps, even to the eye, for painting pixels: a list of OKLCH stops becomes a table of colours. */

import {clamp} from '../histogram/histogram';

/** Lightness 0..1, chroma, hue in degrees. */
export type Oklch = readonly [lightness: number, chroma: number, hue: number];

/** Reads `0.95 0.02 230, 0.5 0.15 260`, as the stylesheet has it. */
export function parseStops(text: string): Oklch[] {
  return text.split(',').map((stop) => stop.trim().split(/\s+/).map(Number) as unknown as Oklch);
}

/** Colours between the stops, `size` of them, each as the bytes r, g, b, a. */
export function ramp(stops: readonly Oklch[], size = 256): Uint8ClampedArray {
  const table = new Uint8ClampedArray(size * 4);
  for (let i = 0; i < size; i++) {
    table.set(rgbOf(colourAt(stops, i / (size - 1))), i * 4);
    table[i * 4 + 3] = 255;
  }
  return table;
}

function colourAt(stops: readonly Oklch[], place: number): Oklch {
  const at = place * (stops.length - 1);
  const left = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [stops[left]!, stops[left + 1]!];
  const mixed = from.map((part, i) => part + (to[i]! - part) * (at - left));
  return mixed as unknown as Oklch;
}

/** OKLCH to sRGB bytes. Source: Björn Ottosson, "A perceptual color space for image processing" (2020). */
export function rgbOf([lightness, chroma, hue]: Oklch): [number, number, number] {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function byte(linear: number): number {
  const light = clamp(linear, 0, 1);
  const encoded = light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
  return Math.round(255 * encoded);
}
