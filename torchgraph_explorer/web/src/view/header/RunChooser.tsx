/** Which run is on show, and a filter for where there are many. */

import './RunChooser.css';

import {openModel} from '../state/live';
import {offeredRuns} from '../state/runFilter';
import * as choices from '../state/choices';
import * as server from '../state/runs';
import {Select} from '../controls/Select';

export function RunChooser() {
  const current = choices.run.value;
  const all = server.runs.value ?? [];
  if (current === null) return null;
  const {runs, problem} = offeredRuns.value;
  const offered = runs.map(({run, error}) => ({value: run, label: error ? `${run} (damaged)` : run}));
  return (
    <>
      {(all.length > 1 || choices.runFilter.value !== '') && <RunFilter count={runs.length} total={all.length} problem={problem} />}
      <Select label="Run" value={current} options={withCurrent(offered, current, all)} onChoose={(run) => openModel(run, null)} />
    </>
  );
}

/** The run on show stays in the list: though the filter leaves it out, and though the folder no longer has it. */
function withCurrent(offered: {value: string; label: string}[], current: string, all: readonly {run: string}[]) {
  if (offered.some(({value}) => value === current)) return offered;
  const isKnown = all.some(({run}) => run === current);
  return [{value: current, label: isKnown ? current : `${current} (not found)`}, ...offered];
}

function RunFilter({count, total, problem}: {count: number; total: number; problem: string | null}) {
  return (
    <span class="run-filter">
      <input
        type="search"
        aria-label="Filter the runs by a regular expression"
        aria-invalid={problem !== null}
        aria-describedby="run-filter-problem"
        title={`Filter the runs by a regular expression: ${count} of ${total} match. Enter shows the first.`}
        placeholder="Filter runs"
        spellcheck={false}
        value={choices.runFilter.value}
        onInput={(event) => (choices.runFilter.value = event.currentTarget.value)}
        onKeyDown={keys}
      />
      <span id="run-filter-problem" class="run-filter-problem" role="status">
        {problem}
      </span>
    </span>
  );
}

function keys(event: KeyboardEvent): void {
  const [first] = offeredRuns.value.runs;
  if (event.key === 'Escape') choices.runFilter.value = '';
  else if (event.key === 'Enter' && first !== undefined) openModel(first.run, null);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
