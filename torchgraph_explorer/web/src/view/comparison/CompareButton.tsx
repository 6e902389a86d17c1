/** Opens the choice of runs; says how many are compared. */

import type {JSX} from 'preact';
import {chosenOthers} from './state';
import {canCompare, chooseRuns, isChoosingRuns} from './RunsDialog';

export function CompareButton(): JSX.Element | null {
  const count = chosenOthers.value.length;
  if (!canCompare.value && count === 0) return null;
  return (
    <button type="button" class="button" aria-haspopup="dialog" aria-expanded={isChoosingRuns.value} title="Compare with other runs (C)" onClick={chooseRuns}>
      {count === 0 ? 'Compare' : `Compare: ${count + 1} runs`}
    </button>
  );
}
