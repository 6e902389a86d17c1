/** Paints the pictures of a tensor on a canvas. */

import {nesting} from '../../tensors/axes';
import {cornerOf} from '../../tensors/grid';
import type {Cell, Counts, Grid} from '../../tensors/grid';
import {channelDim, lightRange} from '../../tensors/look';
import type {Shape} from '../../tensors/look';
import {entryAt, indexInTensor} from '../../tensors/request';
import type {View} from '../../tensors/request';
import {scaleAmong, scaleOf, shader} from '../../tensors/shade';
import type {Rgb, ScaleChoice} from '../../tensors/shade';
import type {Inks} from './shades';

export interface Painting {
  view: View;
  look: Shape;
  scale: ScaleChoice;
  /** The facets' offsets in the part, those of the colours merged into one. */
  facets: Int32Array;
  grid: Grid;
  counts: Counts;
}

interface Facets {
  facets: Int32Array;
  /** Colours that are merged into one facet, and how far apart they are. */
  channels: number;
  channelStride: number;
}

/** The facets that are drawn: of colours, the first of them. */
export function facetsOf(view: View, look: Shape): Facets {
  const shown = view.axes.facets.offsets.subarray(view.firstFacet, view.firstFacet + view.facets);
  const dim = look === 'rgb' ? channelDim(view) : null;
  if (dim === null) return {facets: shown, channels: 1, channelStride: 0};
  const {size} = view.part;
  const stride = size.slice(dim + 1).reduce((product, one) => product * one, 1);
  const channels = size[dim] as number;
  return {facets: shown.filter((offset) => Math.floor(offset / stride) % channels === 0), channels, channelStride: stride};
}

/** With a fourth part, how opaque it is. */
type Colour = (entry: number) => Rgb | readonly [...Rgb, number];

export function paint(canvas: HTMLCanvasElement, painting: Painting, inks: Inks): void {
  const {grid, counts, view, facets} = painting;
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(grid.width * ratio));
  canvas.height = Math.max(1, Math.round(grid.height * ratio));
  canvas.style.width = `${grid.width}px`;
  canvas.style.height = `${grid.height}px`;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = false;
  context.font = inks.font;
  const whole = colouring(painting, inks);
  facets.forEach((offset, facet) => {
    const colour = painting.scale === 'facet' && painting.look === 'heat' ? ofFacet(painting, offset, inks) : whole;
    const {x, y} = cornerOf(grid, {facet, row: 0, column: 0});
    context.drawImage(pixels(view, counts, offset, colour), x, y, counts.columns * grid.cellWidth, counts.rows * grid.cellHeight);
    paintBorders(context, painting, x, y, inks);
    if (grid.label > 0) paintName(context, nameOf(painting, offset), x, y - 3, grid.stepX - 8, inks);
  });
  paintBad(context, painting, inks);
}

function colouring({view, look, scale}: Painting, inks: Inks): Colour {
  const {part} = view;
  if (look === 'grey' || look === 'rgb') return lightness(view, look, inks);
  const shade = shader(inks, scaleOf(part.bounds ?? part.summary, part, scale));
  return (entry) => shade(part.values[entry] as number);
}

function lightness(view: View, look: 'grey' | 'rgb', inks: Inks): Colour {
  const {values} = view.part;
  const {channels, channelStride} = facetsOf(view, look);
  const places = channels === 4 ? [0, 1, 2, 3] : [0, 1, 2];
  const [black, white] = lightRange(view, look);
  const light = (entry: number): number => Math.round(255 * Math.max(0, Math.min(1, ((values[entry] as number) - black) / (white - black || 1))));
  return (entry) => {
    const parts = places.map((channel) => entry + channel * channelStride);
    if (parts.some((one) => !Number.isFinite(values[one]))) return inks.nan;
    return parts.map(light) as unknown as Rgb;
  };
}

function ofFacet({view, counts}: Painting, offset: number, inks: Inks): Colour {
  const {values} = view.part;
  const entries = function* (): Generator<number> {
    for (let row = 0; row < counts.rows; row++)
      for (let column = 0; column < counts.columns; column++) yield values[entryOf(view, offset, row, column)] as number;
  };
  const shade = shader(inks, scaleAmong(entries(), view.part));
  return (entry) => shade(values[entry] as number);
}

function entryOf({axes}: View, offset: number, row: number, column: number): number {
  return axes.base + offset + (axes.rows.offsets[row] as number) + (axes.columns.offsets[column] as number);
}

function pixels(view: View, {rows, columns}: Counts, offset: number, colour: Colour): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const image = context.createImageData(columns, rows);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const entry = entryOf(view, offset, row, column);
      image.data[at + 3] = 255;
      image.data.set(isPartlyBad(view, entry) ? [200, 20, 20] : colour(entry), at);
      at += 4;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Among the neighbours that the entry stands for, one is NaN or infinite. */
function isPartlyBad({part}: View, entry: number): boolean {
  return part.merged !== null && (part.merged.bad[entry] as number) > 0;
}

/** Around a picture, and between the blocks of dimensions that are laid beside each other. */
function paintBorders(context: CanvasRenderingContext2D, {view, grid, counts}: Painting, x: number, y: number, inks: Inks): void {
  const [width, height] = [counts.columns * grid.cellWidth, counts.rows * grid.cellHeight];
  context.strokeStyle = inks.line;
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, Math.max(0, width - 1), Math.max(0, height - 1));
  const [down, across] = [nesting(view.axes.rows), nesting(view.axes.columns)];
  context.fillStyle = inks.surface;
  if (down * grid.cellHeight >= 4) for (let row = down; row < counts.rows; row += down) context.fillRect(x, y + row * grid.cellHeight - 0.75, width, 1.5);
  if (across * grid.cellWidth >= 4) for (let column = across; column < counts.columns; column += across) context.fillRect(x + column * grid.cellWidth - 0.75, y, 1.5, height);
}

/** The index along the facets. */
function nameOf({view, look}: Painting, offset: number): string {
  const {part, axes} = view;
  const index = indexInTensor(part, axes.base + offset);
  const skipped = look === 'rgb' ? channelDim(view) : null;
  const names = axes.facets.dims.filter((dim) => dim !== skipped).map((dim) => (dim === part.batch_dim ? `sample ${part.samples[index[dim] as number]}` : String(index[dim])));
  return names.join(', ');
}

function paintName(context: CanvasRenderingContext2D, name: string, x: number, y: number, width: number, inks: Inks): void {
  const text = context.measureText(name).width <= width ? name : name.replace('sample ', '');
  if (context.measureText(text).width > width + 4) return;
  context.fillStyle = inks.label;
  context.fillText(text, x, y);
}

/** Cells that are large enough say what is not finite in them. */
function paintBad(context: CanvasRenderingContext2D, {view, look, facets, grid, counts}: Painting, inks: Inks): void {
  const {values, merged} = view.part;
  if (look !== 'heat' || merged !== null || Math.min(grid.cellWidth, grid.cellHeight) < 12) return;
  context.fillStyle = inks.badInk;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  facets.forEach((offset, facet) => {
    for (let row = 0; row < counts.rows; row++) {
      for (let column = 0; column < counts.columns; column++) {
        const value = values[entryOf(view, offset, row, column)] as number;
        if (Number.isFinite(value)) continue;
        const {x, y} = cornerOf(grid, {facet, row, column});
        context.fillText(Number.isNaN(value) ? '?' : value > 0 ? '+∞' : '−∞', x + grid.cellWidth / 2, y + grid.cellHeight / 2);
      }
    }
  });
  context.textAlign = 'start';
  context.textBaseline = 'alphabetic';
}

/** The entry of a cell, with the facets of the look. */
export function entryOfCell({view, facets}: Painting, {facet, row, column}: Cell): number {
  const offset = facets[facet];
  return offset === undefined ? entryAt(view, {facet, row, column}) : entryOf(view, offset, row, column);
}
