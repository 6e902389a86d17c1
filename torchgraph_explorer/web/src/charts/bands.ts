/** Quantiles over time, one set per column of pixels, cut into pieces where a series has gaps. */

import type {SeriesHistory} from '../api/types';
import {clamp, QUANTILES, quantiles, sumOf, type Bounds} from '../histogram/histogram';
import {entriesByColumn, type Columns} from './columns';
import {boundsOf, hasHistogram, histogramOf, rowOfEntry} from '../history';
import type {Row} from '../statistics';

/**
 * The quantiles of one column, in the order of `QUANTILES`. Where no histogram was recorded: the smallest element, the mean
 * less 2 and 1 standard deviations, the mean, the mean and 1 and 2 standard deviations, and the largest element.
 */
export interface BandPoint {
  column: number;
  values: readonly number[];
}

/** Unbroken runs of neighbouring columns. Columns without a finite element are gaps. */
export function bandsOf(history: SeriesHistory, columns: Columns): BandPoint[][] {
  return pieces(points(history, columns), (left, right) => right.column === left.column + 1);
}

function points(history: SeriesHistory, columns: Columns): BandPoint[] {
  const all = entriesByColumn(history, columns).map(({column, entries}) => ({column, values: spread(history, entries)}));
  return all.filter(({values}) => !Number.isNaN(values[0]));
}

function spread(history: SeriesHistory, entries: readonly number[]): number[] {
  const bounds = entries.map((entry) => boundsOf(history, entry)).filter(({low}) => !Number.isNaN(low));
  const low = Math.min(...bounds.map((one) => one.low));
  const high = Math.max(...bounds.map((one) => one.high));
  if (entries.some((entry) => !hasHistogram(history, entry))) return aroundMean(entries.map((entry) => rowOfEntry(history, entry)), {low, high});
  const histograms = entries.map((entry) => histogramOf(history, entry));
  return quantiles(histograms.length === 1 ? histograms[0]! : sumOf(histograms), QUANTILES, {low, high});
}

/** What stands for the quantiles of elements of which only statistics are known, all rows together. */
export function aroundMean(rows: readonly Row[], {low, high}: Bounds): number[] {
  const known = rows.filter(({sampled}) => sampled > 0);
  const all = known.reduce((sum, {sampled}) => sum + sampled, 0);
  const meanOf = (of: (row: Row) => number): number => known.reduce((sum, row) => sum + (row.sampled / all) * of(row), 0);
  const mean = meanOf((row) => row.mean);
  const std = Math.sqrt(meanOf((row) => row.std ** 2 + (row.mean - mean) ** 2));
  const inner = [-2, -1, 0, 1, 2].map((times) => clamp(mean + times * std, low, high));
  return [low, ...inner, high];
}

/** Cuts a list wherever two neighbours are not connected. */
export function pieces<T>(items: readonly T[], connected: (left: T, right: T) => boolean): T[][] {
  const found: T[][] = [];
  items.forEach((item, i) => {
    if (i > 0 && connected(items[i - 1]!, item)) found.at(-1)!.push(item);
    else found.push([item]);
  });
  return found;
}
