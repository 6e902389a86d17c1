/** The parameters of a module and of all that it consists of, together. */

import type {Kind, SeriesInfo} from '../api/types';
import type {Row} from '../statistics';
import {ancestors} from './outline';

/** By module: the series of its parameters and of those of all modules in it. */
export function parameterSeries(series: readonly SeriesInfo[], kind: Kind): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const one of series) {
    if (one.role !== 'param' || one.kind !== kind) continue;
    for (const module of new Set([one.module, ...ancestors(one.module)])) {
      const known = found.get(module);
      if (known) known.push(one.series);
      else found.set(module, [one.series]);
    }
  }
  return found;
}

/** What is known of several tensors as if they were one; null without any. The std is left out: it needs more than their rows. */
export function together(rows: readonly Row[]): Row | null {
  if (rows.length === 0) return null;
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const sampled = sum((row) => row.sampled);
  const mean = (of: (row: Row) => number): number => sum((row) => row.sampled * (row.sampled > 0 ? of(row) : 0)) / sampled;
  return {
    count: sum((row) => row.count),
    sampled,
    nan: sum((row) => row.nan),
    positive_infinity: sum((row) => row.positive_infinity),
    negative_infinity: sum((row) => row.negative_infinity),
    zeros: sum((row) => row.zeros),
    min: rows.reduce((least, row) => Math.min(least, row.min), Infinity),
    max: rows.reduce((most, row) => Math.max(most, row.max), -Infinity),
    mean: mean((row) => row.mean),
    absolute_mean: mean((row) => row.absolute_mean),
    std: NaN,
    l2_norm: Math.sqrt(sum((row) => row.l2_norm ** 2)),
  };
}
