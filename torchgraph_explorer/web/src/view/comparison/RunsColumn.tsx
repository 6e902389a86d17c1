/** What is compared: the runs with their colours, how they are aligned and matched, and what has no counterpart. */

import './comparison.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {runLetter} from '../../comparison/choice';
import type {Unmatched} from '../../comparison/matching';
import {IconButton} from '../controls/Icon';
import {Select} from '../controls/Select';
import {chooseTime, timeOptions} from '../state/axis';
import * as choices from '../state/choices';
import {openModel} from '../state/live';
import * as shown from '../state/shown';
import {MostDifferent} from './MostDifferent';
import {RunChip} from './RunChip';
import {BesideStep} from './BesideStep';
import {chooseRuns} from './RunsDialog';
import {against, change, compared, exchange, hiddenByHost, problems, renames, toggleRun} from './state';
import type {Compared} from './state';
import {counted, stepName} from '../../numberText';

export function RunsColumn(): JSX.Element {
  const runs = compared.value;
  return (
    <section class="panel runs" aria-label="Compared runs">
      <header class="runs-header">
        <h2>Runs</h2>
        <button type="button" class="button" onClick={chooseRuns}>
          Choose …
        </button>
        <IconButton icon="close" label="Stop comparing" onPress={() => change({runs: [], isAll: false})} />
      </header>
      <div class="panel-body">
        <ul class="runs-shown">
          {runs.map((run) => (
            <RunItem key={run.number} run={run} />
          ))}
        </ul>
        {hiddenByHost.value > 0 && <p class="runs-problem">{hiddenText(hiddenByHost.value)}</p>}
        {problems.value.map((text) => (
          <p key={text} class="runs-problem" role="status">
            {text}
          </p>
        ))}
        <div class="runs-align">
          <Select label="Aligned by" value={shown.chart.value.time} options={timeOptions.value} onChoose={chooseTime} />
          <p>{alignmentText(runs)}</p>
        </div>
        <MostDifferent />
        <RenameMap />
        {runs.slice(1).map((run) => (
          <NoCounterpart key={run.number} run={run} main={runs[0]!} />
        ))}
      </div>
    </section>
  );
}

function RunItem({run}: {run: Compared}): JSX.Element {
  const name = {run: run.run, model: run.model.name.model};
  const isMain = run.number === 0;
  return (
    <li>
      <RunChip number={run.number} />
      <span class="run-label" title={`${run.run} · ${name.model}`}>
        {run.label}
      </span>
      <BesideStep run={run} />
      {isMain ? (
        <span class="dim run-main">on show</span>
      ) : (
        <>
          <IconButton
            icon="legend"
            label={`Compare the graph with ${run.label}`}
            isPressed={against.value?.number === run.number}
            onPress={() => change({against: run.number})}
          />
          <IconButton icon="up" label={`Show ${run.label}, and compare the others with it`} onPress={() => show(run)} />
          <IconButton icon="close" label={`Remove ${run.label}`} onPress={() => toggleRun(name)} />
        </>
      )}
    </li>
  );
}

function hiddenText(count: number): string {
  return count === 1 ? "TensorBoard's filter of runs leaves one out." : `TensorBoard's filter of runs leaves ${count} out.`;
}

function show(run: Compared): void {
  const {model} = run.model.name;
  exchange({run: run.run, model});
  openModel(run.run, model);
}

/** At which steps the others are shown, where not all have the one on show. */
function alignmentText(runs: readonly Compared[]): string {
  const main = shown.step.value;
  const others = runs.slice(1).map(({model}) => model.step.value);
  if (main === null) return shown.isOver.value ? 'No step was recorded.' : 'No step is recorded yet.';
  if (others.every((step) => step === main)) return `All are at ${stepName(main)}.`;
  const axis = runs[0]!.setting.axis.value.kind;
  const by = axis === 'step' ? '' : ` by ${timeOptions.value.find(({value}) => value === axis)?.label.toLowerCase() ?? axis}`;
  return `Each run is at its logged step nearest${by} to ${stepName(main)} of the run on show.`;
}

function RenameMap(): JSX.Element {
  const text = choices.comparison.value.renames;
  const {rules, problem} = renames.value;
  const isOpen = useSignal(text !== '');
  return (
    <details class="runs-renames" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Renamed modules{rules.length > 0 ? ` (${rules.length})` : ''}</summary>
      <label>
        <span class="sr-only">Names in the run on show = names in the others, one a line</span>
        <textarea
          rows={3}
          spellcheck={false}
          placeholder={'layer1.* = stage1.*'}
          value={text}
          aria-invalid={problem !== null}
          onInput={(event) => change({renames: event.currentTarget.value})}
        />
      </label>
      {problem !== null && (
        <p class="runs-problem" role="status">
          {problem}
        </p>
      )}
    </details>
  );
}

function NoCounterpart({run, main}: {run: Compared; main: Compared}): JSX.Element | null {
  const matching = run.matching.value;
  if (matching === null) return null;
  const {onlyOurs, onlyTheirs} = matching;
  if (onlyOurs.length + onlyTheirs.length === 0) return null;
  return (
    <details class="runs-unmatched">
      <summary>
        <RunChip number={run.number} /> Without counterpart: {countText(onlyOurs, main)}
        {onlyOurs.length > 0 && onlyTheirs.length > 0 && ', '}
        {countText(onlyTheirs, run)}
      </summary>
      <List of={onlyOurs} title={`Only in ${main.label}`} />
      <List of={onlyTheirs} title={`Only in ${run.label}`} />
    </details>
  );
}

function countText(of: readonly Unmatched[], {number}: Compared): string {
  return of.length === 0 ? '' : `${counted(of.length, 'module')} of ${runLetter(number)}`;
}

/** So many are listed at most. */
const MOST = 200;

function List({of, title}: {of: readonly Unmatched[]; title: string}): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {of.slice(0, MOST).map(({module, tensors}) => (
          <li key={module}>
            <code>{module || 'the model'}</code> {tensors.length > 0 && <span class="dim">{tensors.join(', ')}</span>}
          </li>
        ))}
        {of.length > MOST && <li class="dim">and {of.length - MOST} more</li>}
      </ul>
    </>
  );
}
