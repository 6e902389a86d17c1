/** One value axis for several charts. */

import type {SeriesHistory} from '../api/types';
import {lacksHistograms, nonfiniteOf} from '../history';
import {clamp} from '../histogram/histogram';
import type {Bounds} from '../histogram/histogram';
import type {ChartOptions} from './options';
import {linearBelow, linearScale, symlogScale, type ValueScale} from './scale';
import {elementScale} from './valueAxis';

/** Where charts reach this many times as far as each other, a linear axis would show some as a flat line. */
const FAR = 20;

/** So many times as far as the others reaches a history at most that comes to NaN or infinity: on its way there it passes every magnitude. */
const BROKEN = 1000;

/** A history, and the axis that it has alone. */
interface Own {
  history: SeriesHistory;
  scale: ValueScale;
}

/** The axis on which the elements of all histories lie. */
export function barScale(histories: readonly SeriesHistory[], options: ChartOptions): ValueScale {
  const filled = histories.filter((history) => history.counts.length > 0 || lacksHistograms(history));
  const own = filled.map((history) => ({history, scale: elementScale(history, options)}));
  return joined(own, options, (ends) => Math.min(...filled.map((history) => linearBelow(history, ends))));
}

/**
 * An axis as long as all of these; logarithmic if one of them is, or if, left to the data, they differ much. What breaks
 * does not squash the others, unless the whole range is asked for.
 */
export function joined(
  own: readonly Own[],
  {scale, range}: Pick<ChartOptions, 'scale' | 'range'>,
  least: (ends: Bounds) => number,
): ValueScale {
  if (own.length === 0) return linearScale({low: 0, high: 1});
  if (own.length === 1) return own[0]!.scale;
  const scales = range === 'full' ? own.map((one) => one.scale) : withoutBroken(own);
  const ends = {low: Math.min(...scales.map(({low}) => low)), high: Math.max(...scales.map(({high}) => high))};
  const reaches = scales.map(reachOf);
  const isFar = scale === 'auto' && Math.max(...reaches) > FAR * Math.min(...reaches);
  return isFar || scales.some(({kind}) => kind === 'symlog') ? symlogScale(ends, least(ends)) : linearScale(ends);
}

/** The axes, but those of what breaks only as far as they leave the others room. */
function withoutBroken(own: readonly Own[]): ValueScale[] {
  const isBroken = own.map(({history}) => history.frame.some((_, entry) => nonfiniteOf(history, entry) > 0));
  const reaches = own.flatMap(({scale}, i) => (isBroken[i]! ? [] : [reachOf(scale)]));
  const most = reaches.length === 0 ? Infinity : BROKEN * Math.max(...reaches);
  return own.map(({scale}, i) =>
    isBroken[i]! ? {...scale, low: clamp(scale.low, -most, most), high: clamp(scale.high, -most, most)} : scale,
  );
}

function reachOf({low, high}: Bounds): number {
  return Math.max(Math.abs(low), Math.abs(high));
}
