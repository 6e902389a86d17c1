/** Scalars as a table of comma-separated values. docs/format.md describes its columns. */

import {exactNumber} from '../../charts/format';
import type {ScalarData} from '../../model/scalars';
import {quoted} from '../../xray/table';

const HEAD = ['name', 'label', 'step', 'last_step', 'values', 'not_finite', 'time', 'value', 'low', 'high'];

/** A header row, and a row for each value, or for the neighbouring values that one entry stands for, of each scalar that has come. */
export function scalarsCsv({scalars, values}: Pick<ScalarData, 'scalars' | 'values'>): string {
  const rows = scalars.flatMap(({name, label}, number) => {
    const of = values.get(number);
    if (of === undefined) return [];
    return Array.from(of.step, (step, at) => {
      const numbers = [step, of.last[at]!, of.count[at]!, of.bad[at]!, of.time[at]!, of.value[at]!, of.low[at]!, of.high[at]!];
      return [quoted(name), quoted(label ?? ''), ...numbers.map(numberText)];
    });
  });
  return [HEAD, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

/** How many scalars have come. */
export function countOf({scalars, values}: Pick<ScalarData, 'scalars' | 'values'>): number {
  return scalars.filter((_, number) => values.has(number)).length;
}

function numberText(value: number): string {
  return Number.isNaN(value) ? 'nan' : exactNumber(value).replaceAll('−', '-').replace('∞', 'inf');
}
