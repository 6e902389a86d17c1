/** What is said of an entry of a tensor. Pure. */

import type {TensorPart} from '../api/tensors';
import {formatNumber} from '../numberText';
import {indexInTensor} from './request';
import {shortest} from './shade';

/** `[sample 4, 2, 3]`; a range where the entry stands for several. */
function placeText(part: TensorPart, entry: number): string {
  const texts = indexInTensor(part, entry).map((at, dim) => {
    if (dim === part.batch_dim) return [`sample ${part.samples[at] ?? at}`, part.categories[at]].filter(Boolean).join(' ');
    const last = Math.min(at + (part.factors[dim] as number), part.stop[dim] as number) - 1;
    return last > at ? `${at}–${last}` : String(at);
  });
  return `[${texts.join(', ')}]`;
}

/** `−0.25`; of several elements their mean and range. */
function valueText(part: TensorPart, entry: number): string {
  const value = part.values[entry] as number;
  if (part.merged === null) return `${part.is_rounded ? '≈ ' : ''}${shortest(value, part.dtype)}`;
  const {low, high, bad} = part.merged;
  const range = `mean ${formatNumber(value)}, ${formatNumber(low[entry] as number)} to ${formatNumber(high[entry] as number)}`;
  const lost = bad[entry] as number;
  return lost > 0 ? `${range}, ${lost} NaN or ∞` : range;
}

export function entryText(part: TensorPart, entry: number): string {
  return `${placeText(part, entry)} = ${valueText(part, entry)}`;
}
