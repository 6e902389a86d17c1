/** The table of neurons as comma-separated values. */

import {indexOf} from '../../tensors/axes';
import {shortest} from '../../tensors/shade';
import type {Column} from '../../tensors/table';
import {quoted} from '../../xray/table';

/** A header row, and `rows` in their order: the index by dimension, then the columns with all digits. */
export function neuronCsv(columns: readonly Column[], rows: readonly number[], size: readonly number[]): string {
  const head = [...size.map((_, dim) => `index ${dim}`), ...columns.map(({name}) => quoted(name))];
  const lines = rows.map((row) => [...indexOf(row, size), ...columns.map(({values, dtype}) => numberText(values[row] as number, dtype))]);
  return [head, ...lines].map((line) => `${line.join(',')}\r\n`).join('');
}

function numberText(value: number, dtype: string): string {
  if (Number.isFinite(value)) return shortest(value, dtype).replaceAll('−', '-');
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}
