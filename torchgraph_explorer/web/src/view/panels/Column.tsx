/** One pinned node: its header and its tensors. */

import type {JSX} from 'preact';

import {page} from '../../api/client';
import type {Setting} from '../../charts/setting';
import type {Model} from '../../model/model';
import {endsOf} from '../../graph/edges';
import type {ModuleGraph} from '../../api/types';
import {LEAST_CALLS, turnText} from '../../graph/folds';
import {parseKey} from '../../graph/keys';
import {seriesOfNode, type NodeSeries} from '../../model/series';
import {TurnSlider} from '../controls/TurnSlider';
import {Icon} from '../controls/Icon';
import {changePin, find, pin, unpin, type Pin} from '../state/choices';
import * as shown from '../state/shown';
import {makeWay} from '../layout/sides';
import {FindingCard} from '../findings/FindingCard';
import {chosen, panelOfChosen} from '../findings/found';
import {Section} from './Section';
import {subjectOf, type Subject} from './subject';

const SECTIONS: readonly (readonly [keyof NodeSeries, string])[] = [
  ['edge', 'Gradient along the edge'],
  ['input', 'Input'],
  ['output', 'Output'],
  ['attached', 'Attached'],
  ['params', 'Params'],
];

export interface ColumnProps {
  pin: Pin;
  model: Model | null;
  /** Of the model's strips. */
  setting: Setting | null;
}

/** A column of the panels. Its colour marks the node in the graph. */
export function Column({pin, model, setting}: ColumnProps): JSX.Element {
  const data = model?.data.value ?? null;
  const subject = subjectOf(pin.key, model?.graph.value ?? null);
  const series = seriesOfNode(data?.series ?? [], pin.key, model?.graph.value ?? null);
  const what = endsOf(pin.key) === null ? 'node' : 'edge';
  const calls = callsOfPin(model?.graph.value ?? null, pin);
  const onCall = pin.isOfAll && calls.length >= LEAST_CALLS ? (call: number) => changeCall(pin, call) : null;
  const isEmpty = data !== null && Object.values(series).every((tensors) => tensors.length === 0);
  return (
    <section
      class="panel"
      style={{'--pin': `var(--pin-${pin.colour})`}}
      aria-label={`Panel of ${subject.title} ${subject.call}`.trim()}
      data-pin={pin.key}
      data-passing={pin.isPassing || undefined}
    >
      <Header pin={pin} subject={subject} />
      {calls.length >= LEAST_CALLS && <Calls pin={pin} calls={calls} title={subject.title} />}
      <div class="panel-body">
        {model !== null && setting !== null && chosen.value && panelOfChosen.value === pin.key && (
          <FindingCard finding={chosen.value} model={model} setting={setting} />
        )}
        {model !== null &&
          setting !== null &&
          SECTIONS.map(([role, title]) => (
            <Section key={role} title={title} tensors={series[role]} subject={subject} model={model} setting={setting} onCall={onCall} />
          ))}
        {isEmpty && <p class="panel-note">{page === null ? `Nothing of this ${what} was recorded${shown.isOver.value ? '' : ' yet'}.` : `This page has no numbers of this ${what}.`}</p>}
      </div>
    </section>
  );
}

/** The numbers of all calls of the module that is pinned, in order. */
function callsOfPin(graph: ModuleGraph | null, {key}: Pin): number[] {
  const parsed = parseKey(key);
  if (graph === null || parsed?.kind !== 'call') return [];
  const module = graph.modules.findIndex(({name}) => name === parsed.module);
  return graph.calls.flatMap((call) => (call.module === module ? [call.call] : [])).sort((a, b) => a - b);
}

function changeCall(pin: Pin, call: number): void {
  changePin(pin.key, {key: `${parseKey(pin.key)?.module ?? ''}#${call}`});
}

/** Which call of a repeated module is shown, or all of them. */
function Calls({pin, calls, title}: {pin: Pin; calls: readonly number[]; title: string}): JSX.Element {
  const call = parseKey(pin.key)?.call ?? 0;
  const turn = Math.max(0, calls.indexOf(call));
  return (
    <div class="panel-calls">
      <TurnSlider
        label="Call"
        name={`${title} in its panel`}
        turn={turn}
        count={calls.length}
        text={turnText(call, turn, calls.length, calls.at(-1) ?? 0)}
        onChoose={(next) => changeCall(pin, calls[next] ?? call)}
      />
      <button type="button" aria-pressed={pin.isOfAll ?? false} onClick={() => changePin(pin.key, {isOfAll: !pin.isOfAll})}>
        All calls
      </button>
    </div>
  );
}

function goTo(key: Pin['key']): void {
  makeWay();
  find(endsOf(key)?.[1] ?? key);
}

function Header({pin: {key, isPassing}, subject: {title, call, detail}}: {pin: Pin; subject: Subject}): JSX.Element {
  const name = `${title} ${call}`.trim();
  return (
    <header class="panel-header">
      <span class="panel-chip" aria-hidden="true" />
      <h2 title={name}>
        <span class="panel-name">
          <bdi>{title}</bdi>
        </span>
        {call && <span class="panel-call">{call}</span>}
        <span class="panel-class">{detail}</span>
      </h2>
      {isPassing && (
        <button type="button" class="panel-button" aria-label={`Keep the panel of ${name}`} title="Keep this panel: the next look takes its place" onClick={() => pin(key)}>
          <Icon name="pin" />
        </button>
      )}
      <button type="button" class="panel-button" aria-label={`Find ${name} in the graph`} title="Find in graph" onClick={() => goTo(key)}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="4.5" />
          <path d="M8 1v4M8 11v4M1 8h4M11 8h4" />
        </svg>
      </button>
      <button type="button" class="panel-button" aria-label={`Close the panel of ${name}`} title="Close" onClick={() => unpin(key)}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M4 4l8 8M12 4l-8 8" />
        </svg>
      </button>
    </header>
  );
}
