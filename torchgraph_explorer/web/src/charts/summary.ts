/** What a strip shows, in words. */

import type {SeriesHistory} from '../api/types';
import {formatNumber, nonfinite} from '../state/measures';
import {fullExtent} from './extent';
import {entryOf, nonfiniteOf, rowOfEntry} from './history';

/** A strip in a sentence or two: how many steps, between which values, and whether anything was not finite. */
export function summaryOf(name: string, history: SeriesHistory, steps: ArrayLike<number>): string {
  const known = history.frame.filter((frame) => frame < steps.length); // histories may be ahead of the poll
  const entries = known.length;
  if (entries === 0) return `${name}: nothing recorded yet.`;
  const [first, last] = [steps[known[0]!], steps[known[entries - 1]!]];
  const when = entries === 1 ? `one step, ${first}` : `${entries} steps, ${first} to ${last}`;
  const extent = fullExtent(history);
  const values = extent ? `values from ${formatNumber(extent.low)} to ${formatNumber(extent.high)}` : 'no finite value';
  return `${name}: ${when}; ${values}${trouble(history)}.`;
}

function trouble(history: SeriesHistory): string {
  const steps = Array.from(history.frame.keys()).filter((entry) => nonfiniteOf(history, entry) > 0).length;
  if (steps === 0) return '';
  return `; NaN or infinite values at ${steps} step${steps === 1 ? '' : 's'}`;
}

/** The chosen step in words. */
export function stepSummary(history: SeriesHistory, frame: number, steps: ArrayLike<number>): string {
  const entry = entryOf(history, frame);
  if (entry < 0) return `step ${steps[frame]}: nothing recorded`;
  const row = rowOfEntry(history, entry);
  const odd = nonfinite(row) > 0 ? `, ${formatNumber(nonfinite(row))} NaN or infinite` : '';
  return `step ${steps[frame]}: mean ${formatNumber(row.mean)}, std ${formatNumber(row.std)}${odd}`;
}
