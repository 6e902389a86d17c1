/** The value axis of a strip: which extent it shows, on which scale. */

import type {SeriesHistory} from '../api/types';
import {measureNamed} from '../state/measures';
import type {ChartOptions} from '../state/store';
import type {BandPoint} from './bands';
import type {Bounds} from './buckets';
import {axisExtent, fullExtent, robustExtent, usualExtent} from './extent';
import {linePoints} from './lines';
import {linearBelow, linearScale, symlogScale, type ValueScale} from './scale';

/** The axis for a heat strip and for bars: where the elements lie. */
export function elementScale(history: SeriesHistory, options: ChartOptions): ValueScale {
  const extent = options.range === 'full' ? fullExtent(history) : robustExtent(history, options.reject);
  return scaleOf(history, extent, options);
}

/** The axis for quantile bands: where the outermost quantiles lie. */
export function bandScale(history: SeriesHistory, bands: readonly BandPoint[][], options: ChartOptions): ValueScale {
  const outermost = bands.flat().flatMap(({values}) => [values[0]!, values.at(-1)!]);
  return scaleOf(history, usualExtent(outermost, usual(options)), options);
}

/** The axis for a line: where the statistic lies. */
export function measureScale(history: SeriesHistory, options: ChartOptions): ValueScale {
  const points = linePoints(history, measureNamed(options.statistic));
  const values = points.flatMap(({value, low, high}) => (low === high ? [value] : [low, high]));
  const ends = axisExtent(usualExtent(values, usual(options)));
  if (options.scale === 'linear') return linearScale(ends);
  const smallest = values.reduce((least, value) => (value !== 0 ? Math.min(least, Math.abs(value)) : least), Infinity);
  const reach = Math.max(Math.abs(ends.low), Math.abs(ends.high));
  return symlogScale(ends, Math.max(Math.min(smallest, reach / 10), reach * 1e-9));
}

/** Of a line only far outliers are left out: what is cut off it misleads more than an element at the rim. */
function usual({range, reject}: ChartOptions): {reject: number; room: number} {
  return {reject: range === 'full' ? 0 : reject, room: 1};
}

function scaleOf(history: SeriesHistory, extent: Bounds | null, {scale}: ChartOptions): ValueScale {
  const ends = axisExtent(extent);
  return scale === 'linear' ? linearScale(ends) : symlogScale(ends, linearBelow(history, ends));
}
