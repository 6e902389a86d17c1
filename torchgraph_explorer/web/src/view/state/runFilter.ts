/** Which runs the chooser offers: those whose names match what was typed, or TensorBoard's filter of runs. */

import {computed} from '@preact/signals';
import {LONGEST_TEXT, patternOf} from '../../graph/pattern';
import {runFilter} from './choices';
import {runs} from './runs';

interface Filtered<Run> {
  runs: readonly Run[];
  /** Why the filter was taken as plain text, or that nothing matches it, as a sentence. */
  problem: string | null;
}

/** The runs whose names match; a filter that is no usable regular expression is taken as plain text. */
export function filtered<Run extends {run: string}>(runs: readonly Run[], filter: string): Filtered<Run> {
  if (filter === '') return {runs, problem: null};
  const {regex, problem} = patternOf(filter, 'i', Math.max(0, ...runs.map(({run}) => run.length)));
  const plain = filter.toLowerCase();
  const found = runs.filter(({run}) => (regex === null ? run.toLowerCase().includes(plain) : regex.test(run.slice(0, LONGEST_TEXT))));
  const refusal = problem === null ? null : `${problem} It is taken as plain text.`;
  return {runs: found, problem: refusal ?? (found.length === 0 ? 'No run has a name that matches.' : null)};
}

export const offeredRuns = computed(() => filtered(runs.value ?? [], runFilter.value));
