/** What a rule allows of what a plot shows. */

import type {Band} from '../api/types';
import type {Bounds} from '../histogram/histogram';
import type {ChartOptions} from './options';

/** The lowest and the highest value that is allowed; infinite without a bound. */
export type Limits = Bounds;

/** The band as limits on the plot's axis; null where the plot shows something else than what the band bounds. */
export function limitsIn(band: Band | null, {mode, statistic}: Pick<ChartOptions, 'mode' | 'statistic'>): Limits | null {
  if (band === null || (band.statistic === 'elements') !== (mode !== 'line')) return null;
  if (mode === 'line' && band.statistic !== statistic) return null;
  return {low: band.low ?? -Infinity, high: band.high ?? Infinity};
}

/** The extent, made to reach the limits that it is beyond of, or else the nearest ones, so that they can be seen. */
export function withLimits(extent: Bounds | null, {low, high}: Limits): Bounds | null {
  if (extent === null) return null;
  const finite = [low, high].filter(Number.isFinite);
  return {low: Math.min(extent.low, ...finite), high: Math.max(extent.high, ...finite)};
}
