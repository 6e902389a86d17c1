/** The bar at the top: what is on show, and whether it is live. */

import './Header.css';

import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {signal} from '@preact/signals';
import {page} from '../../api/client';
import {SILENT} from '../../api/errors';
import {notesOf} from '../../model/data';
import type {Page} from '../../api/page';
import {askNow, openModel} from '../state/live';
import * as choices from '../state/choices';
import {durationText, liveness, quietSeconds} from '../state/quiet';
import * as server from '../state/runs';
import * as shown from '../state/shown';
import {CompareButton} from '../comparison/CompareButton';
import {FindingsButton} from '../findings/FindingsButton';
import {FlowButton} from '../flow/FlowButton';
import {FirstTrouble} from './FirstTrouble';
import {Icon, IconButton} from '../controls/Icon';
import {isHelpOpen} from '../Help';
import {Menu} from '../controls/Menu';
import {isSearching} from '../Search';
import {RunChooser} from './RunChooser';
import {Select} from '../controls/Select';
import {toggle, toggleLabel} from '../layout/sides';
import {nextTheme} from './theme';
import {counted, wholeNumber} from '../../numberText';

/** The bar, where there is room for it. */
export function Header() {
  return (
    <header class="header">
      <WordMark />
      <HeaderItems end={<IconButton icon="up" label={toggleLabel('header')} onPress={() => toggle('header')} isExpanded />}>
        <FirstTrouble />
        <FindingsButton />
      </HeaderItems>
    </header>
  );
}

/** What is in it, also where it is folded into a menu; `children` stand behind run and model, `end` is the last button. */
export function HeaderItems({children, end}: {children?: ComponentChildren; end?: ComponentChildren}) {
  const runs = server.runs.value ?? [];
  const models = runs.find(({run}) => run === choices.run.value)?.models ?? [];
  const theme = choices.theme.value;
  return (
    <>
      <RunChooser />
      {choices.model.value !== null && choices.run.value !== null && (
        <Select
          label="Model"
          value={choices.model.value}
          options={withCurrent(models.map((model) => ({value: model, label: modelLabel(model)})), choices.model.value)}
          onChoose={(model) => openModel(choices.run.value as string, model)}
        />
      )}
      <CompareButton />
      {children}
      <Warnings />
      <div class="spacer" />
      <ConnectionState />
      <FlowButton />
      <div class="header-tools">
        <button type="button" class="search-button" onClick={() => (isSearching.value = true)}>
          <Icon name="search" /> Search <kbd>/</kbd>
        </button>
        <IconButton icon={theme} label={`Theme: ${theme === 'auto' ? "the system's" : theme} (T)`} onPress={nextTheme} />
        <IconButton icon="help" label="Keys and help (?)" onPress={() => (isHelpOpen.value = true)} />
        {end}
      </div>
    </>
  );
}

/** A model in whose steps there is NaN or infinity says so in the list. */
function modelLabel(model: string): string {
  const {first = null, others = []} = shown.nonfinite.value ?? {};
  const isBad = others.includes(model) || (first !== null && model === choices.model.value);
  return isBad ? `${model} – NaN or ∞` : model;
}

interface Choice {
  value: string;
  label: string;
}

/** A model that a link names stays in the list even if the run does not have it. */
function withCurrent(options: Choice[], current: string): Choice[] {
  const isKnown = options.some(({value}) => value === current);
  return isKnown ? options : [{value: current, label: `${current} (not found)`}, ...options];
}

function WordMark() {
  return (
    <div class="word-mark" aria-label="torchgraph explorer">
      <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
        <path class="mark-line" d="M12 7v3.5M12 10.5c0 3-5 2.5-5 5.5M12 10.5c0 3 5 2.5 5 5.5" />
        <circle class="mark-root" cx="12" cy="4.5" r="2.8" />
        <circle class="mark-left" cx="7" cy="18.5" r="2.5" />
        <circle class="mark-right" cx="17" cy="18.5" r="2.8" />
      </svg>
      <span>torchgraph</span>
    </div>
  );
}

function Warnings() {
  const box = useRef<HTMLDetailsElement>(null);
  const data = shown.data.value;
  const all = data === null ? [] : notesOf(data);
  if (all.length === 0) return null;
  const button = (
    <summary title="What is to be known about this record">
      {counted(all.length, 'message')}
    </summary>
  );
  return (
    <Menu box={box} class="warnings" button={button}>
      <ul>
        {all.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </Menu>
  );
}

function ConnectionState() {
  const state = server.connection.value;
  return (
    <>
      <span class="sr-only" role="status">
        {stateText()}
      </span>
      <div class={`connection is-${liveness.value}`} title="Steps are those that were recorded">
        <i class="dot" />
        <span>{state === 'retrying' ? <Retrying /> : connectionText()}</span>
        {state === 'retrying' && (
          <button type="button" class="button" onClick={askNow}>
            Retry now
          </button>
        )}
      </div>
    </>
  );
}

/** What is read aloud when it changes: without the steps and the seconds, which change all the time. */
function stateText(): string {
  const state = liveness.value;
  if (state === 'retrying') return server.problem.value ?? SILENT;
  if (state === 'loading') return 'Loading';
  if (page !== null) return 'Exported';
  if (state === 'missing' && shown.data.value !== null) return 'Run not found'; // it was there before
  if (server.runs.value?.length === 0) return 'Waiting for a run';
  if (state === 'empty') return server.chosenRun.value?.error ? 'Cannot be read' : 'Nothing recorded yet';
  if (state === 'missing') return 'Run not found';
  if (state === 'finished') return 'Finished';
  if (state === 'stopped') return 'Ended without closing';
  return state === 'quiet' ? 'No new steps' : 'Live';
}

function connectionText(): string {
  const steps = shown.data.value?.steps.length ?? 0;
  const isCounted = !['loading', 'empty', 'missing'].includes(liveness.value) && server.runs.value?.length !== 0;
  if (isCounted && page !== null) return exportedText(page, steps);
  const since = liveness.value === 'quiet' ? ` for ${durationText(quietSeconds.value)}` : '';
  return isCounted ? `${stateText()}${since}, ${counted(steps, 'step')}` : stateText();
}

/** How much of the run an exported page has; its notes say what is missing. */
function exportedText({recorded}: Page, steps: number): string {
  const name = shown.model.value?.name;
  const all = (name && recorded(name)?.frames) ?? steps;
  return all === steps ? `Exported, all of ${counted(steps, 'step')}` : `Exported, showing ${wholeNumber(steps)} of ${counted(all, 'step')}`;
}

const tick = signal(0);

/** What went wrong, counting down to the next try. */
function Retrying() {
  useEffect(() => {
    const timer = setInterval(() => (tick.value += 1), 500);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  const left = Math.max(0, Math.ceil(((server.retryAt.value ?? 0) - performance.now()) / 1000));
  return (
    <>
      {stateText()} {left > 0 ? `Trying again in ${left} s` : 'Trying again'}
    </>
  );
}
