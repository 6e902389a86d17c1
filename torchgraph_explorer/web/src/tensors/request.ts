/** Which part of a tensor is fetched for a picture, and what of it is drawn. Pure. */

import type {TensorPart} from '../api/tensors';
import {axesOf, indexOf} from './axes';
import type {Axes, AxisRole} from './axes';

/** Elements that are fetched at once. Of a larger tensor, one index along each slider is, and rows and columns are shrunk. */
export const MOST_ELEMENTS = 1 << 18;
/** Pictures beside each other. */
export const MOST_FACETS = 64;

export interface Layout {
  size: readonly number[];
  roles: readonly AxisRole[];
  positions: readonly number[];
  /** A range along each dimension, `:` for everything; null for everything along all. */
  ranges: string | null;
  page: number;
  /** Only one index along each slider is fetched, of small tensors too. */
  isSingle?: boolean;
}

export function partAsked({size, roles, positions, ranges, page, isSingle = false}: Layout): {at: string; shrink: number[]} {
  const near = rangesOf(ranges, size.length);
  const isLarge = product(size) > MOST_ELEMENTS;
  const facets = [...size.keys()].filter((dim) => roles[dim] === 'facet');
  const at = size.map((length, dim) => {
    if ((isLarge || isSingle) && roles[dim] === 'slider') return String(positions[dim] ?? 0);
    if (isLarge && facets.length === 1 && facets[0] === dim) return `${page * MOST_FACETS}:${Math.min(length, (page + 1) * MOST_FACETS)}`;
    return near?.[dim] ?? ':';
  });
  const shrink = [...size.keys()].filter((dim) => roles[dim] === 'row' || roles[dim] === 'column');
  return {at: at.join(), shrink};
}

function rangesOf(text: string | null, dims: number): string[] | null {
  const found = text?.split(',') ?? [];
  return found.length === dims ? found : null;
}

/** What a picture shows of a part. */
export interface View {
  part: TensorPart;
  axes: Axes;
  /** The first of `axes.facets.offsets` that is shown, and how many are. */
  firstFacet: number;
  facets: number;
  /** How many facets there are. */
  allFacets: number;
}

/** `roles` may be those of an earlier tensor, of another number of dimensions: null then. */
export function viewOf(part: TensorPart, {roles, positions, page, size}: Omit<Layout, 'ranges' | 'isSingle'>): View | null {
  if (part.size.length !== roles.length) return null;
  const inPart = positions.map((at, dim) => (part.size[dim] === size[dim] ? at : at - (part.start[dim] ?? 0)));
  const axes = axesOf(part.size, roles, inPart);
  const paged = axes.facets.dims.length === 1 ? axes.facets.dims[0] : undefined;
  const isPaged = paged !== undefined && (part.size[paged] as number) < (size[paged] as number);
  const allFacets = isPaged ? (size[paged] as number) : axes.facets.offsets.length;
  const firstFacet = isPaged ? 0 : Math.min(page * MOST_FACETS, Math.max(0, allFacets - 1));
  const facets = Math.min(MOST_FACETS, axes.facets.offsets.length - firstFacet);
  return {part, axes, firstFacet, facets: Math.max(0, facets), allFacets};
}

/** The number, among the entries of the part, of a cell. */
export function entryAt({axes, firstFacet}: View, {facet, row, column}: {facet: number; row: number; column: number}): number {
  const [f, r, c] = [axes.facets.offsets[firstFacet + facet], axes.rows.offsets[row], axes.columns.offsets[column]];
  return axes.base + (f ?? 0) + (r ?? 0) + (c ?? 0);
}

/** The first index in the tensor, along each dimension, of an entry of a part. */
export function indexInTensor(part: TensorPart, entry: number): number[] {
  return indexOf(entry, part.size).map((at, dim) => (part.start[dim] as number) + at * (part.factors[dim] as number));
}

/** The ranges in the tensor that an entry stands for; enough around it to see what it is among. */
export function rangesAround(part: TensorPart, entry: number, shape: readonly number[]): string {
  const first = indexInTensor(part, entry);
  return first
    .map((at, dim) => {
      const factor = part.factors[dim] as number;
      if (factor === 1) return ':';
      const around = Math.max(32, 4 * factor);
      const start = Math.max(0, Math.min(at - around, (shape[dim] as number) - 2 * around));
      return `${start}:${Math.min(shape[dim] as number, start + 2 * around + factor)}`;
    })
    .join();
}

/** The cell that shows an index of the tensor; null where it is not shown. */
export function cellOf(view: View, index: readonly number[]): {facet: number; row: number; column: number} | null {
  const {part, axes} = view;
  const local = index.map((at, dim) => Math.floor((at - (part.start[dim] as number)) / (part.factors[dim] as number)));
  if (index.length !== part.size.length || local.some((at, dim) => at < 0 || at >= (part.size[dim] as number))) return null;
  const place = (dims: readonly number[], sizes: readonly number[]): number =>
    dims.reduce((sum, dim, i) => sum * (sizes[i] as number) + (local[dim] as number), 0);
  const [facet, row, column] = [axes.facets, axes.rows, axes.columns].map((axis) => place(axis.dims, axis.sizes)) as [number, number, number];
  const cell = {facet: facet - view.firstFacet, row, column};
  const entry = local.reduce((sum, at, dim) => sum * (part.size[dim] as number) + at, 0);
  return cell.facet >= 0 && cell.facet < view.facets && entryAt(view, cell) === entry ? cell : null;
}

export function product(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total * one, 1);
}
