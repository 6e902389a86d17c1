/** What a strip shows, in words. */

import type {SeriesHistory} from '../api/types';
import {counted, formatNumber, stepName, wholeNumber} from '../numberText';
import {nonfinite} from '../statistics';
import {fullExtent} from './extent';
import {entryOf, mergedText, nonfiniteOf, rowOfEntry} from '../history';

/** A strip in a sentence or two: how many steps, between which values, and whether anything was not finite. */
export function summaryOf(name: string, history: SeriesHistory, steps: ArrayLike<number>): string {
  const known = history.frame.filter((frame) => frame < steps.length); // histories may be ahead of the poll
  const entries = known.length;
  if (entries === 0) return `${name}: nothing recorded.`;
  const count = history.merged.subarray(0, entries).reduce((sum, frames) => sum + frames, 0);
  const [first, last] = [steps[known[0]!]!, steps[Math.min(history.last[entries - 1]!, steps.length - 1)]!];
  const when = count === 1 ? `one step, ${wholeNumber(first)}` : `${counted(count, 'step')}, ${wholeNumber(first)} to ${wholeNumber(last)}`;
  const extent = fullExtent(history);
  const values = extent ? `values from ${formatNumber(extent.low)} to ${formatNumber(extent.high)}` : 'no finite value';
  return `${name}: ${when}; ${values}${trouble(history, steps)}.`;
}

function trouble(history: SeriesHistory, steps: ArrayLike<number>): string {
  const entries = Array.from(history.frame.keys()).filter((entry) => nonfiniteOf(history, entry) > 0);
  if (entries.length === 0) return '';
  if (history.unit > 1) return `; NaN or infinite values, first at ${stepName(steps[history.bad[entries[0]!]!] ?? 0)}`;
  return `; NaN or infinite values at ${entries.length} step${entries.length === 1 ? '' : 's'}`;
}

/** The chosen step in words. */
export function stepSummary(history: SeriesHistory, frame: number, steps: ArrayLike<number>): string {
  const entry = entryOf(history, frame);
  if (entry < 0) return `${stepName(steps[frame] ?? 0)}: nothing recorded`;
  const row = rowOfEntry(history, entry);
  const when = mergedText(history, entry, steps) ?? stepName(steps[frame] ?? 0);
  const odd = nonfinite(row) > 0 ? `, ${formatNumber(nonfinite(row))} NaN or infinite` : '';
  return `${when}: mean ${formatNumber(row.mean)}, std ${formatNumber(row.std)}${odd}`;
}
