/** One value axis for several charts. */

import type {SeriesHistory} from '../api/types';
import {lacksHistograms} from '../history';
import type {ChartOptions} from './options';
import {linearBelow, linearScale, symlogScale, type ValueScale} from './scale';
import {elementScale} from './valueAxis';

/** Where charts reach this many times as far as each other, a linear axis would show some as a flat line. */
const FAR = 20;

/** The axis on which the elements of all histories lie. */
export function barScale(histories: readonly SeriesHistory[], options: ChartOptions): ValueScale {
  const filled = histories.filter((history) => history.counts.length > 0 || lacksHistograms(history));
  const scales = filled.map((history) => elementScale(history, options));
  return joined(scales, options, (ends) => Math.min(...filled.map((history) => linearBelow(history, ends))));
}

/** An axis as long as all of these; logarithmic if one of them is, or if, left to the data, they differ much. */
export function joined(
  scales: readonly ValueScale[],
  {scale}: Pick<ChartOptions, 'scale'>,
  least: (ends: {low: number; high: number}) => number,
): ValueScale {
  if (scales.length === 0) return linearScale({low: 0, high: 1});
  if (scales.length === 1) return scales[0]!;
  const ends = {low: Math.min(...scales.map(({low}) => low)), high: Math.max(...scales.map(({high}) => high))};
  const reaches = scales.map(({low, high}) => Math.max(Math.abs(low), Math.abs(high)));
  const isFar = scale === 'auto' && Math.max(...reaches) > FAR * Math.min(...reaches);
  return isFar || scales.some(({kind}) => kind === 'symlog') ? symlogScale(ends, least(ends)) : linearScale(ends);
}
