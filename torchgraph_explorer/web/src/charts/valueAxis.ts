/** The value axis of a strip: which extent it shows, on which scale. */

import type {SeriesHistory} from '../api/types';
import {measureNamed} from '../statistics';
import type {ChartOptions} from './options';
import type {BandPoint} from './bands';
import type {Bounds} from '../histogram/histogram';
import {axisExtent, endsOf, extentOfEnds, robustExtent, usualExtent} from './extent';
import {withLimits, type Limits} from './limits';
import {linePoints} from './lines';
import {linearBelow, linearScale, symlogScale, type ScaleKind, type ValueScale} from './scale';
import {chooseScale} from './scaleChoice';

/** So many times beyond the line, a limit makes the axis logarithmic. */
const FAR = 20;

const known = new WeakMap<SeriesHistory, Map<string, ValueScale>>();

/** The axis for a heat strip and for bars: where the elements lie. Worked out once. */
export function elementScale(history: SeriesHistory, options: ChartOptions): ValueScale {
  const ofHistory = known.get(history) ?? new Map<string, ValueScale>();
  known.set(history, ofHistory);
  const name = JSON.stringify([options.scale, options.range, options.reject]);
  const scale = ofHistory.get(name) ?? scaleOfElements(history, options);
  ofHistory.set(name, scale);
  return scale;
}

function scaleOfElements(history: SeriesHistory, options: ChartOptions): ValueScale {
  const reject = options.range === 'full' ? 0 : options.reject;
  return scaleOf(history, robustExtent(history, reject), elementKind(history, options));
}

/** The scale for elements: the user's, else one by how far they reach over time. */
function elementKind(history: SeriesHistory, {scale, range, reject}: ChartOptions): ScaleKind {
  if (scale !== 'auto') return scale;
  const share = range === 'full' ? 0 : reject;
  const ends = endsOf(history, share);
  const sizes = Float64Array.from({length: ends.length / 2}, (_, entry) => reachOf({low: ends[2 * entry]!, high: ends[2 * entry + 1]!}));
  return chooseScale({sizes, reachOf: (count) => reachOf(extentOfEnds(ends.subarray(0, 2 * count), share))});
}

/** The scale for a line: the user's, else one by how large the statistic is over time. */
function lineKind(values: readonly number[], {scale, ...options}: ChartOptions): ScaleKind {
  if (scale !== 'auto') return scale;
  const reachOfFirst = (count: number): number => reachOf(usualExtent(values.slice(0, count), usual(options)));
  return chooseScale({sizes: values.map(Math.abs), reachOf: reachOfFirst});
}

/** How far from zero an extent reaches; NaN without one. */
function reachOf(extent: Bounds | null): number {
  return extent === null ? NaN : Math.max(Math.abs(extent.low), Math.abs(extent.high));
}

/** The axis for quantile bands: where the outermost quantiles lie. */
export function bandScale(history: SeriesHistory, bands: readonly BandPoint[][], options: ChartOptions): ValueScale {
  const outermost = bands.flat().flatMap(({values}) => [values[0]!, values.at(-1)!]);
  return scaleOf(history, usualExtent(outermost, usual(options)), elementKind(history, options));
}

/** The axis for a line: where the statistic lies. */
export function measureScale(history: SeriesHistory, options: ChartOptions, limits: Limits | null = null): ValueScale {
  const points = linePoints(history, measureNamed(options.statistic));
  const values = points.flatMap(({value, low, high}) => (low === high ? [value] : [low, high]));
  const extent = usualExtent(values, usual(options));
  const ends = axisExtent(limits === null ? extent : withLimits(extent, limits));
  const kind = limits !== null && isFar(extent, ends, options) ? 'symlog' : lineKind(points.map(({value}) => value), options);
  if (kind === 'linear') return linearScale(ends);
  const smallest = values.reduce((least, value) => (value !== 0 ? Math.min(least, Math.abs(value)) : least), Infinity);
  const reach = Math.max(Math.abs(ends.low), Math.abs(ends.high));
  return symlogScale(ends, Math.max(Math.min(smallest, reach / 10), reach * 1e-9));
}

/** The limits squash the line if the axis is linear. */
function isFar(extent: Bounds | null, ends: Bounds, {scale}: ChartOptions): boolean {
  return scale === 'auto' && extent !== null && reachOf(ends) > FAR * Math.max(reachOf(extent), Number.MIN_VALUE);
}

/** Of a line only far outliers are left out: what is cut off it misleads more than an element at the rim. */
function usual({range, reject}: Pick<ChartOptions, 'range' | 'reject'>): {reject: number; room: number} {
  return {reject: range === 'full' ? 0 : reject, room: 1};
}

function scaleOf(history: SeriesHistory, extent: Bounds | null, kind: ScaleKind): ValueScale {
  const ends = axisExtent(extent);
  return kind === 'linear' ? linearScale(ends) : symlogScale(ends, linearBelow(history, ends));
}
