/** The heat of a strip, and its rims. */

import type {Heat} from '../heat';
import {RIM, type Box} from '../layout';
import type {Palette} from '../palette';
import {bodyPixels, rimPixels, type Pixels} from '../pixels';
import type {Scene} from '../scene';
import type {Context} from './context';

/** Paints the rows, and as thin lines beyond them what lies outside the axis. */
export function drawHeat(context: Context, heat: Heat, {scene, palette}: {scene: Scene; palette: Palette}): void {
  const {plot} = scene.layout;
  if (heat.columns.left.length === 0) return;
  const body = bitmapOf(bodyPixels(heat, palette.heat, scene.options.counts));
  const {width} = body; // as far as the run goes
  stretch(context, body, {...plot, width});
  const rims = bitmapOf(rimPixels(heat, palette.rim));
  context.drawImage(rims, 0, 0, width, 1, plot.x, plot.y - 1 - RIM, width, RIM);
  context.drawImage(rims, 0, 1, width, 1, plot.x, plot.y + plot.height + 1, width, RIM);
}

function bitmapOf({width, height, bytes}: Pixels): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  canvas.getContext('2d')!.putImageData(new ImageData(bytes, width, height), 0, 0);
  return canvas;
}

function stretch(context: Context, bitmap: HTMLCanvasElement, {x, y, width, height}: Box): void {
  context.imageSmoothingEnabled = false;
  context.drawImage(bitmap, x, y, width, height);
}
