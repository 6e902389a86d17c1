/** How wide a text is in the font of the page, which differs between machines by a third. */

import {clip} from '../../graph/geometry';

export interface Type {
  weight: number;
  px: number;
}

const MOST_KEPT = 10_000;
const widths = new Map<string, number>();
let context: CanvasRenderingContext2D | null = null;

/** In pixels. */
export function textWidth(text: string, type: Type): number {
  const key = `${type.weight} ${type.px} ${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  if (widths.size >= MOST_KEPT) widths.clear();
  const width = measure(text, type);
  widths.set(key, width);
  return width;
}

function measure(text: string, {weight, px}: Type): number {
  context ??= document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
  context.font = `${weight} ${px}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/** The text, cut in its middle to what fits into `width` pixels. */
export function fitting(text: string, width: number, type: Type): string {
  const all = textWidth(text, type);
  if (all <= width) return text;
  let letters = Math.floor((width * text.length) / all);
  while (letters > 2 && textWidth(clip(text, letters, 1), type) > width) letters -= 1; // those at its ends may be wide ones
  return clip(text, letters, 1);
}

/** The text, without as much of its beginning as does not fit into `width` pixels: names have that in common. */
export function fittingEnd(text: string, width: number, type: Type): string {
  const all = textWidth(text, type);
  if (all <= width) return text;
  let letters = Math.ceil((width * text.length) / all);
  while (letters > 1 && textWidth(`…${text.slice(-letters)}`, type) > width) letters -= 1;
  return `…${text.slice(-letters)}`;
}
