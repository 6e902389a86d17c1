/** How a part of a tensor is shown: as a number, bars, a heat map or a picture. Pure. */

import type {TensorKey, TensorPart} from '../api/tensors';
import {isChannelsLast} from './axes';
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
  const value = part.size.filter((_, dim) => dim !== part.batch_dim);
  const [height, width] = isChannelsLast(value) ? [value[0], value[1]] : [value.at(-2), value.at(-1)];
  if (!isImage || value.length !== 3 || (height ?? 0) < 8 || (width ?? 0) < 8) return 'heat';
  const channels = isChannelsLast(value) ? value[2] : value[0];
  return channels === 1 ? 'grey' : channels === 3 && channelDim(view) !== null ? 'rgb' : 'heat';
}

/** The facets that are red, green and blue; null where no such dimension is. */
export function channelDim({part, axes}: View): number | null {
  return axes.facets.dims.find((dim) => part.size[dim] === 3 && dim !== part.batch_dim) ?? null;
}
