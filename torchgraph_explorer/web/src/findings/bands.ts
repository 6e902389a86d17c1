/** The band of a rule, in the units of a strip. */

import type {Band, Finding, SeriesName} from '../api/types';
import {formatNumber} from '../numberText';
import {MEASURES} from '../statistics';

/** The band of the finding if it is one of that series; null else, and where the viewer does not know its statistic. */
export function bandIn(finding: Finding | null, series: SeriesName): Band | null {
  if (finding?.band == null || !isKnown(finding.band)) return null;
  const {module, call, path, band} = finding;
  const isSame = series.module === module && series.call === call && series.path === path && series.kind === band.kind;
  return isSame ? band : null;
}

function isKnown({statistic, low, high}: Band): boolean {
  const isDrawn = statistic === 'elements' || MEASURES.some(({name}) => name === statistic);
  return isDrawn && (low !== null || high !== null);
}

/** What is shaded: `share of zeros above 0.98`, `elements below −3 or above 3`. */
export function bandText({statistic, low, high}: Band): string {
  const what = MEASURES.find(({name}) => name === statistic)?.label ?? 'Elements';
  const beyond = [low === null ? [] : `below ${formatNumber(low)}`, high === null ? [] : `above ${formatNumber(high)}`].flat();
  return `Not allowed: ${what.charAt(0).toLowerCase()}${what.slice(1)} ${beyond.join(' or ')}`;
}
