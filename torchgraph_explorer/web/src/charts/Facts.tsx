/** The statistics of a series at the chosen step, in a few short lines. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';

import type {SeriesHistory} from '../api/types';
import {formatCount, formatNumber, nonfinite, type Row} from '../statistics';
import {currentFrame, data} from '../view/state/choices';
import {percent} from './format';
import {entryOf, isLost, lostText, mergedText, rowOfEntry} from '../history';
import {troubleOf, type Fact} from './tipFacts';

/** What `Facts` lists of a row of statistics. */
function factsOf(row: Row): Fact[] {
  return [
    ['mean', formatNumber(row.mean)],
    ['std', formatNumber(row.std)],
    ['min', formatNumber(row.min)],
    ['max', formatNumber(row.max)],
    ['l2', formatNumber(row.l2_norm)],
    ['zeros', percent(row.zeros, row.sampled)],
  ];
}

/** All is lost to the same. */
function isOneKind(history: SeriesHistory, entry: number): boolean {
  return isLost(history, entry) && troubleOf(rowOfEntry(history, entry)).length === 1;
}

/** The chosen step's statistics; says so when the series has none there. */
export function Facts({history}: {history: ReadonlySignal<SeriesHistory | null>}): JSX.Element | null {
  const [held, frame] = [history.value, currentFrame.value];
  if (held === null || frame === null) return null;
  const entry = entryOf(held, frame);
  if (entry < 0) return <p class="facts-none">nothing recorded at step {data.value?.steps[frame]}</p>;
  const row = rowOfEntry(held, entry);
  const merged = mergedText(held, entry, data.value?.steps ?? []);
  return (
    <>
      {merged !== null && <p class="facts-none">{merged}</p>}
      {row.count === 0 && <p class="facts-none">no elements</p>}
      {isLost(held, entry) && <p class="facts-lost">{lostText(row)}</p>}
      <dl class="facts">
        {row.sampled > 0 && factsOf(row).map((fact) => pair(fact))}
        {!isOneKind(held, entry) && troubleOf(row).map((fact) => pair(fact, 'is-trouble'))}
      </dl>
    </>
  );
}

function pair([name, value]: Fact, kind = ''): JSX.Element {
  return (
    <div key={name} class={kind} data-fact={name}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** How many elements the tensor has at the chosen step, and how many of them were looked at. */
export function Elements({history}: {history: ReadonlySignal<SeriesHistory | null>}): JSX.Element | null {
  const [held, frame] = [history.value, currentFrame.value];
  const entry = held === null || frame === null ? -1 : entryOf(held, frame);
  return entry < 0 ? null : <span class="elements">{elementsText(rowOfEntry(held!, entry))}</span>;
}

/** `16.4k of 74k elements` when a sample was taken. */
function elementsText(row: Row): string {
  const isSample = row.sampled + nonfinite(row) < row.count;
  const count = `${formatCount(row.count)} element${row.count === 1 ? '' : 's'}`;
  return isSample ? `${formatCount(row.sampled)} of ${count}` : count;
}
