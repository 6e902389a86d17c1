/** Chooses which runs are compared with the one on show: a list with a filter. */

import '../dialog.css';
import './comparison.css';

import {computed, signal} from '@preact/signals';
import type {JSX} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';
import type {RunInfo} from '../../api/types';
import {isSame, MOST_RUNS} from '../../comparison/choice';
import {giveFocus} from '../controls/focus';
import {IconButton} from '../controls/Icon';
import * as choices from '../state/choices';
import {offeredRuns} from '../state/runFilter';
import {chosenRun, runs as known} from '../state/runs';
import {RunChip} from './RunChip';
import {change, chosenOthers, modelOf, toggleRun} from './state';

export const isChoosingRuns = signal(false);

/** There is something to compare, and something to compare it with: another run, or another model. */
export const canCompare = computed(() => chosenRun.value !== undefined && (known.value ?? []).reduce((count, {models}) => count + models.length, 0) > 1);

export function chooseRuns(): void {
  isChoosingRuns.value = canCompare.value;
}

export function RunsDialog(): JSX.Element | null {
  return isChoosingRuns.value ? <Box /> : null;
}

function close(): void {
  isChoosingRuns.value = false;
}

function Box(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement);
  useLayoutEffect(() => {
    input.current?.focus();
    const back = before.current;
    return () => giveFocus(back);
  }, []);
  const {runs, problem} = offeredRuns.value;
  const {isAll} = choices.comparison.value;
  const count = chosenOthers.value.length;
  return (
    <div class="overlay" onPointerDown={(event) => event.target === event.currentTarget && close()}>
      <div
        class="runs-dialog"
        role="dialog"
        aria-modal="true"
        aria-label="Compare runs"
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === 'Escape') close();
        }}
      >
        <header>
          <h2 title={choices.run.value ?? undefined}>
            Compare{' '}
            <span class="runs-main">
              <bdi>{choices.run.value}</bdi>
            </span>{' '}
            with
          </h2>
          <IconButton icon="close" label="Close" onPress={close} />
        </header>
        <div class="runs-filter">
          <input
            ref={input}
            type="search"
            aria-label="Filter the runs by a regular expression"
            placeholder="Filter runs"
            spellcheck={false}
            value={choices.runFilter.value}
            onInput={(event) => (choices.runFilter.value = event.currentTarget.value)}
          />
          <label title={`All runs that match, now and later; at most ${MOST_RUNS}`}>
            <input type="checkbox" checked={isAll} onChange={() => change(isAll ? {isAll: false, runs: chosenOthers.peek()} : {isAll: true})} /> all that match
          </label>
        </div>
        {problem !== null && <p class="runs-problem">{problem}</p>}
        <ul class="runs-list">{runs.flatMap((run) => entriesOf(run))}</ul>
        <footer>
          <span class="dim">{count === 0 ? 'None is chosen.' : `${count} chosen.`}{count >= MOST_RUNS ? ` No more than ${MOST_RUNS} can be.` : ''}</span>
          <div class="spacer" />
          <button type="button" class="button" disabled={count === 0} onClick={() => change({isAll: false, runs: []})}>
            Clear
          </button>
          <button type="button" class="button" onClick={close}>
            Done
          </button>
        </footer>
      </div>
    </div>
  );
}

/** A line for each model that can be compared; for a run without any, one that says so. */
function entriesOf(run: RunInfo): JSX.Element[] {
  if (run.models.length === 0) return [<li key={run.run} class="is-none">{run.run} <span>{run.error === null ? 'nothing recorded yet' : 'cannot be read'}</span></li>];
  const usual = modelOf(run, choices.model.value);
  return [usual, ...run.models.filter((model) => model !== usual)].flatMap((model) => {
    const isMain = isSame({run: run.run, model}, {run: choices.run.value ?? '', model: choices.model.value ?? ''});
    return isMain ? [] : [<Entry key={JSON.stringify([run.run, model])} run={run} model={model} isModelNamed={run.models.length > 1 || model !== choices.model.value} />];
  });
}

function Entry({run, model, isModelNamed}: {run: RunInfo; model: string; isModelNamed: boolean}): JSX.Element {
  const chosen = chosenOthers.value.find((one) => isSame(one, {run: run.run, model}));
  const isFull = chosen === undefined && chosenOthers.value.length >= MOST_RUNS;
  return (
    <li>
      <label>
        <input type="checkbox" checked={chosen !== undefined} disabled={isFull} onChange={() => toggleRun({run: run.run, model})} />
        {chosen === undefined ? <i class="run-chip is-free" /> : <RunChip number={chosen.number} />}
        <span class="runs-name">{run.run}</span>
        <span class="runs-model">
          {isModelNamed && <span class="dim">{model}</span>} {run.error !== null && <span class="runs-damaged">damaged</span>}
        </span>
        <span class="dim runs-when">{run.last_write === null ? '' : new Date(run.last_write * 1000).toLocaleString()}</span>
      </label>
    </li>
  );
}
