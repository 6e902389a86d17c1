/** A series as a table of comma-separated values. Which columns it has is told in docs/format.md. */

import {STATISTICS, type SeriesHistory} from '../../api/types';
import {QUANTILES, quantiles} from '../../histogram/histogram';
import {boundsOf, histogramOf, isMerged} from '../../history';
import type {ModelData} from '../../model/data';

const ADDED = ['step', 'last_step', 'steps_merged', 'time', 'clock'];
const SHARES = QUANTILES.map((share) => `quantile_${share.toFixed(2)}`);

/** A header row, and a row for each entry of the history. */
export function csvOf(history: SeriesHistory, {steps, times, clock}: Pick<ModelData, 'steps' | 'times' | 'clock'>): string {
  const rows = Array.from(history.frame, (first, entry) => {
    const last = history.last[entry]!;
    const statistics = history.statistics.subarray(entry * STATISTICS.length, (entry + 1) * STATISTICS.length);
    const spread = quantiles(histogramOf(history, entry), QUANTILES, boundsOf(history, entry));
    const merged = isMerged(history, entry) ? history.merged[entry]! : 1;
    const place = [steps[first], steps[last], merged, times[first], clock[first] ?? null];
    return [...place.map(numberText), ...Array.from(statistics, singleText), ...spread.map(singleText)].join(',');
  });
  return [[...ADDED, ...STATISTICS, ...SHARES].join(','), ...rows, ''].join('\r\n');
}

/** Whether some rows stand for several steps. */
export function isThinned(history: SeriesHistory): boolean {
  return history.merged.some((frames) => frames > 1);
}

function numberText(value: number | null | undefined): string {
  if (value === null || value === undefined) return '';
  return Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

/** A float32 with as many digits as tell it from its neighbours. */
function singleText(value: number): string {
  return numberText(Number.isFinite(value) ? Number(value.toPrecision(9)) : value);
}
