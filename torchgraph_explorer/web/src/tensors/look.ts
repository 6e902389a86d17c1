/** How a part of a tensor is shown: as a number, bars, a heat map or a picture. Pure. */

import type {TensorKey, TensorPart} from '../api/tensors';
import {isChannelsLast, LEAST_SIDE, MOST_CHANNELS} from './axes';
import type {Look} from './choice';
import type {View} from './request';

export type Shape = 'empty' | 'number' | 'bars' | 'heat' | 'grey' | 'rgb';

/** Bars of a vector longer than this hide each other. */
const MOST_BARS = 4096;

export function lookOf(view: View, chosen: Look, key: Pick<TensorKey, 'role' | 'kind'>): Shape {
  const {part, axes} = view;
  if (part.values.length === 0) return 'empty';
  if (part.values.length === 1 && part.merged === null && chosen === 'auto') return 'number';
  if (chosen !== 'auto') return chosen === 'rgb' && channelDim(view) === null ? 'heat' : chosen;
  if (axes.rows.offsets.length === 1 && view.allFacets === 1 && axes.columns.offsets.length <= MOST_BARS && part.merged === null) return 'bars';
  return pictureOf(part, view, key);
}

/** Images as images: what is given to a module, and bytes. */
function pictureOf(part: TensorPart, view: View, {role, kind}: Pick<TensorKey, 'role' | 'kind'>): Shape {
  const isImage = kind === 'value' && (role === 'input' || part.dtype === 'uint8') && !/^(bool|u?int(16|32|64))$/.test(part.dtype);
  const channels = isImage ? channelsOf(part) : 0;
  if (channels === 1) return 'grey';
  if (channels === 3 && channelDim(view) !== null) return 'rgb';
  if (channels === 0 || !hasLightness(part)) return 'heat';
  return channels === 4 && channelDim(view) !== null ? 'rgb' : 'grey';
}

/** How many channels the picture of a sample has; 0 of what is no picture. Bytes need no dimension for one channel. */
function channelsOf(part: TensorPart): number {
  const value = part.size.filter((_, dim) => dim !== part.batch_dim);
  const sizes = value.length === 2 && part.dtype === 'uint8' ? [1, ...value] : value;
  if (sizes.length !== 3) return 0;
  if (isChannelsLast(sizes)) return sizes[2] as number;
  const [channels = 0, height = 0, width = 0] = sizes;
  return channels <= MOST_CHANNELS && Math.min(height, width) >= LEAST_SIDE ? channels : 0;
}

/** All values are bytes, or from 0 to 1: two or four channels of other numbers, as latent images have them, are no colours. */
function hasLightness({dtype, bounds, summary}: TensorPart): boolean {
  const {low, high} = bounds ?? summary;
  return dtype === 'uint8' || ((low ?? -1) >= 0 && (high ?? 2) <= 1);
}

/** The numbers that are black and white in a picture: the least and the largest, unless the type or one for how opaque it is says more. */
export function lightRange(view: View, look: 'grey' | 'rgb'): [black: number, white: number] {
  const {part} = view;
  const {low, high} = part.bounds ?? part.summary;
  const dim = look === 'rgb' ? channelDim(view) : null;
  if (part.dtype === 'uint8') return [0, 255];
  return dim !== null && part.size[dim] === 4 && hasLightness(part) ? [0, 1] : [low ?? 0, high ?? 1];
}

/** The facets that are red, green and blue, and perhaps how opaque it is; null where no such dimension is. */
export function channelDim({part, axes}: View): number | null {
  return axes.facets.dims.find((dim) => [3, 4].includes(part.size[dim] as number) && dim !== part.batch_dim) ?? null;
}
