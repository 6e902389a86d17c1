/** The statistics of a series at the step on show, in a few short lines. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';

import type {SeriesHistory} from '../api/types';
import {formatCount, formatNumber, stepName} from '../numberText';
import {nonfinite, type Row} from '../statistics';
import {percent} from './format';
import {entryOf, isLost, lostText, mergedText, reached, rowOfEntry} from '../history';
import type {Setting} from './setting';
import {troubleOf, type Fact} from './tipFacts';

export interface FactsProps {
  history: ReadonlySignal<SeriesHistory | null>;
  setting: Pick<Setting, 'frame' | 'frames'>;
}

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

/** No element is finite, and all are NaN, or all are of one infinity. */
function isOneKind(history: SeriesHistory, entry: number): boolean {
  return isLost(history, entry) && troubleOf(rowOfEntry(history, entry)).length === 1;
}

/** The statistics at the step on show; says so when the series has none there. */
export function Facts({history, setting}: FactsProps): JSX.Element | null {
  const [known, frame, {steps}] = [history.value, setting.frame.value, setting.frames.value];
  if (known === null || frame === null) return null;
  const entry = entryOf(known, reached(known, frame));
  if (entry < 0) return <p class="facts-none">nothing recorded at {stepName(steps[frame] ?? 0)}</p>;
  const row = rowOfEntry(known, entry);
  const merged = mergedText(known, entry, steps);
  return (
    <>
      {merged !== null && <p class="facts-none">{merged}</p>}
      {row.count === 0 && <p class="facts-none">no elements</p>}
      {isLost(known, entry) && <p class="facts-lost">{lostText(row)}</p>}
      <dl class="facts">
        {row.sampled > 0 && factsOf(row).map((fact) => pair(fact))}
        {!isOneKind(known, entry) && troubleOf(row).map((fact) => pair(fact, 'is-trouble'))}
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

/** How many elements the tensor has at the step on show, and how many of them were looked at. */
export function Elements({history, setting}: FactsProps): JSX.Element | null {
  const [known, frame] = [history.value, setting.frame.value];
  const entry = known === null || frame === null ? -1 : entryOf(known, reached(known, frame));
  return entry < 0 ? null : <span class="elements">{elementsText(rowOfEntry(known!, entry))}</span>;
}

/** `16.4k of 74k elements` when a sample was taken. */
function elementsText(row: Row): string {
  const isSample = row.sampled + nonfinite(row) < row.count;
  const count = `${formatCount(row.count)} element${row.count === 1 ? '' : 's'}`;
  return isSample ? `${formatCount(row.sampled)} of ${count}` : count;
}
