/** The neurons of a tensor as rows: which of them, in which order. Pure. */

import type {Numbers} from '../api/tensors';
import {indexOf} from './axes';

export interface Column {
  name: string;
  values: Numbers;
  dtype: string;
}

export interface Sorting {
  /** Number of the column; -1 sorts by index. */
  column: number;
  isDescending: boolean;
}

type Test = (row: number) => boolean;

/**
 * What a filter says: `nan`, `> 0.5`, `<= -1`, `|x| > 3` about the column that sorts, or an index in which `*` stands for any
 * number: `3, *`. Null where it says nothing that is understood.
 */
export function filterOf(text: string, values: ArrayLike<number> | null, size: readonly number[]): Test | null {
  const wanted = text.trim().toLowerCase().replaceAll('−', '-');
  if (wanted === '') return () => true;
  if (/^(nan|inf|bad)$/.test(wanted)) return values && ((row) => !Number.isFinite(values[row]));
  const [, isSize, sign, number] = /^(\|x\|)?\s*(<=|>=|<|>|=)\s*(-?[\d.]+(?:e[-+]?\d+)?)$/.exec(wanted) ?? [];
  if (sign !== undefined && values !== null) return comparison(sign, Number(number), (row) => (isSize ? Math.abs(values[row] as number) : (values[row] as number)));
  return indexFilter(wanted, size);
}

function comparison(sign: string, bound: number, of: (row: number) => number): Test {
  const tests: Record<string, (value: number) => boolean> = {
    '<': (value) => value < bound,
    '<=': (value) => value <= bound,
    '>': (value) => value > bound,
    '>=': (value) => value >= bound,
    '=': (value) => value === bound,
  };
  const test = tests[sign] as (value: number) => boolean;
  return (row) => test(of(row));
}

function indexFilter(text: string, size: readonly number[]): Test | null {
  const parts = text.replace(/^\[|\]$/g, '').split(/\s*,\s*/);
  if (parts.length > size.length || !parts.every((part) => /^(\*|\d+)$/.test(part))) return null;
  return (row) => {
    const index = indexOf(row, size);
    return parts.every((part, dim) => part === '*' || Number(part) === index[dim]);
  };
}

/** The rows that pass, in order. NaN and infinities stand first where the largest do, else last. */
export function orderOf(rows: number, values: ArrayLike<number> | null, test: Test, isDescending: boolean): number[] {
  const found: number[] = [];
  for (let row = 0; row < rows; row++) if (test(row)) found.push(row);
  if (values === null) return isDescending ? found.reverse() : found;
  const rank = (row: number): number => (Number.isNaN(values[row]) ? Infinity : (values[row] as number));
  const sign = isDescending ? -1 : 1;
  return found.sort((a, b) => (rank(a) === rank(b) ? a - b : sign * (rank(a) < rank(b) ? -1 : 1)));
}
