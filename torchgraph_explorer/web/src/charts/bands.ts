/** Quantiles over time, one set per column of pixels, cut into pieces where a series has gaps. */

import type {SeriesHistory} from '../api/types';
import {QUANTILES, quantiles, sumOf} from '../histogram/histogram';
import {entriesByColumn, type Columns} from './columns';
import {boundsOf, histogramOf} from '../history';

/** The quantiles of one column, in the order of `QUANTILES`. */
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
  const histograms = entries.map((entry) => histogramOf(history, entry));
  return quantiles(histograms.length === 1 ? histograms[0]! : sumOf(histograms), QUANTILES, {low, high});
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
