/** How the dimensions of a tensor are laid out on the screen. Pure. */

import {stridesOf} from '../api/selection';

/** Rows and columns of a picture; one picture for each index along facets; one index at a time along sliders. */
export type AxisRole = 'row' | 'column' | 'facet' | 'slider';

export const AXIS_ROLES: readonly AxisRole[] = ['row', 'column', 'facet', 'slider'];

/** Several dimensions along one axis: the last one runs fastest. */
export interface Axis {
  dims: number[];
  /** Entries along each of `dims`. */
  sizes: number[];
  /** Offset of each place on the axis among the elements; `[1]` of 0 without dimensions. */
  offsets: Int32Array;
}

export interface Axes {
  rows: Axis;
  columns: Axis;
  facets: Axis;
  /** Offset of the sliders. */
  base: number;
}

/** Longest side of a kernel, whose dimensions are laid beside those of the channels. */
const KERNEL = 16;

/** Channels of an image, and pixels of its sides. */
export const MOST_CHANNELS = 4;
export const LEAST_SIDE = 8;

/**
 * What each dimension is at first. `batch` is the dimension of the samples, null without one; it is a slider unless all
 * samples are shown.
 */
export function defaultRoles(shape: readonly number[], batch: number | null, isAllSamples = false): AxisRole[] {
  const dims = [...shape.keys()].filter((dim) => dim !== batch);
  const found = new Map(dims.map((dim, i) => [dim, rolesOf(dims.map((one) => shape[one] as number))[i] as AxisRole]));
  return shape.map((_, dim) => found.get(dim) ?? (isAllSamples ? besides(dims.length) : 'slider'));
}

function rolesOf(sizes: readonly number[]): AxisRole[] {
  const [height, width] = [sizes.at(-2) ?? 0, sizes.at(-1) ?? 0];
  if (sizes.length === 3 && isChannelsLast(sizes)) return ['row', 'column', 'facet'];
  if (sizes.length === 4 && Math.max(height, width) <= KERNEL) return kernelRoles(sizes);
  const roles: AxisRole[] = ['facet', 'row', 'column'];
  return sizes.length <= 3 ? roles.slice(3 - sizes.length) : [...Array<AxisRole>(sizes.length - 3).fill('slider'), ...roles];
}

/** Output channels down and input channels across, each a picture; those of one channel beside each other. */
function kernelRoles([outputs = 0, inputs = 0]: readonly number[]): AxisRole[] {
  return Math.min(outputs, inputs) === 1 ? ['facet', 'facet', 'row', 'column'] : ['row', 'column', 'row', 'column'];
}

/** Height, width and 1 to 4 channels. */
export function isChannelsLast(sizes: readonly number[]): boolean {
  const [height = 0, width = 0, channels = 0] = sizes;
  return channels >= 1 && channels <= MOST_CHANNELS && height >= LEAST_SIDE && width >= LEAST_SIDE;
}

/** Where all samples are shown: above each other if each is a vector, else beside each other. */
function besides(dims: number): AxisRole {
  return dims === 0 ? 'column' : dims === 1 ? 'row' : 'facet';
}

/** Where the entries of an array of `size` are. `positions` are indices along the sliders. */
export function axesOf(size: readonly number[], roles: readonly AxisRole[], positions: readonly number[]): Axes {
  const strides = stridesOf(size);
  const axis = (role: AxisRole): Axis => {
    const dims = [...size.keys()].filter((dim) => roles[dim] === role);
    return {dims, sizes: dims.map((dim) => size[dim] as number), offsets: offsetsOf(dims, size, strides)};
  };
  const base = roles.reduce((sum, role, dim) => {
    const at = Math.min(positions[dim] ?? 0, (size[dim] as number) - 1);
    return role === 'slider' ? sum + Math.max(0, at) * (strides[dim] as number) : sum;
  }, 0);
  return {rows: axis('row'), columns: axis('column'), facets: axis('facet'), base};
}

function offsetsOf(dims: readonly number[], size: readonly number[], strides: readonly number[]): Int32Array {
  let offsets: number[] = [0];
  for (const dim of dims) {
    const along = [...Array(size[dim] as number).keys()].map((i) => i * (strides[dim] as number));
    offsets = offsets.flatMap((start) => along.map((one) => start + one));
  }
  return Int32Array.from(offsets);
}

/** The index along each dimension of element number `at` of an array. */
export function indexOf(at: number, size: readonly number[]): number[] {
  return stridesOf(size).map((stride, dim) => Math.floor(at / stride) % Math.max(1, size[dim] as number));
}

/** Number of the element at an index; null where that is outside. */
export function numberOf(index: readonly number[], size: readonly number[]): number | null {
  if (index.length !== size.length || index.some((at, dim) => at < 0 || at >= (size[dim] as number))) return null;
  const strides = stridesOf(size);
  return index.reduce((sum, at, dim) => sum + at * (strides[dim] as number), 0);
}

/** How many places of the inner dimensions lie between two borders of the outermost one; 0 without nesting. */
export function nesting({sizes}: Axis): number {
  return sizes.length < 2 ? 0 : sizes.slice(1).reduce((product, one) => product * one, 1);
}

/** One letter for each dimension, as the address has it. */
export function rolesText(roles: readonly AxisRole[]): string {
  return roles.map((role) => role[0]).join('');
}

/** What such a text says about a tensor of so many dimensions; null where it says nothing. */
export function rolesFrom(text: string | null, dims: number): AxisRole[] | null {
  if (text === null || text.length !== dims) return null;
  const roles = [...text].flatMap((letter) => AXIS_ROLES.filter((role) => role[0] === letter));
  return roles.length === dims ? roles : null;
}
