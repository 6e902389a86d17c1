/** The step on show, chosen by a slider; without a choice the latest is followed. */

import './TimeBar.css';

import {signal} from '@preact/signals';
import {stepName, wholeNumber} from '../../numberText';
import {clockNumber} from '../../charts/format';
import {nearestBad} from './badSteps';
import {stepBy} from '../state/navigate';
import type {ModelData} from '../../model/data';
import {stepFacts} from '../../model/stepFacts';
import {stepToChoose} from '../../steps';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Icon, IconButton} from '../controls/Icon';
import {TimeFindings} from '../findings/TimeFindings';
import {toggle, toggleLabel} from '../layout/sides';
import {frameNear, framesWithin} from './barPlaces';
import {places, TimeCurve} from './TimeCurve';
import {OptimizerChoice} from './OptimizerChoice';
import {stepTexts, stepTitle} from './stepTexts';
import type {StepTexts} from './stepTexts';
import {badSpans, TimeMarks} from './TimeMarks';

/** The slider is moved by a pointer, which cannot tell many steps on one pixel apart. */
const isPointed = signal(false);

export function TimeBar() {
  const data = shown.data.value;
  const frame = shown.frame.value;
  const last = (data?.steps.length ?? 0) - 1;
  const isFollowing = choices.step.value === null;
  const share = places.value.shares[frame ?? 0] ?? 0;
  return (
    <footer class="time-bar" aria-label="Step">
      <IconButton icon="previous" label="Step back (,)" onPress={() => stepBy(-1)} disabled={!frame} />
      <IconButton icon="next" label="Step forward (.)" onPress={() => stepBy(1)} disabled={isFollowing || frame === null} />
      <Readout />
      <OptimizerChoice />
      <div class="time-track">
        <TimeCurve />
        <TimeMarks />
        <TimeFindings />
        <input
          type="range"
          class="time-slider"
          aria-label="Step"
          aria-valuetext={valueText()}
          min={0}
          max={Math.max(0, last)}
          step="any"
          value={Math.round(1e6 * share * Math.max(0, last)) / 1e6}
          disabled={last < 1}
          style={{'--share': `${100 * share}%`}}
          onKeyDown={stepByArrow}
          onPointerDown={() => (isPointed.value = true)}
          onPointerUp={() => (isPointed.value = false)}
          onPointerCancel={() => (isPointed.value = false)}
          onInput={({currentTarget: slider}) => choose(framePointedAt(slider, last))}
        />
      </div>
      <span class="time-last dim">{last >= 0 ? wholeNumber(data!.steps[last]!) : ''}</span>
      <button
        type="button"
        class="button follow"
        aria-pressed={isFollowing}
        disabled={frame === null}
        aria-label="Follow latest"
        title="Always show the latest step (L)"
        onClick={() => (choices.step.value = null)}
      >
        <Icon name="latest" /> <span>Follow latest</span>
      </button>
      <IconButton icon="down" label={toggleLabel('steps')} onPress={() => toggle('steps')} isExpanded />
    </footer>
  );
}

function valueText(): string {
  const [data, frame] = [shown.data.value, shown.frame.value];
  if (data === null || frame === null) return shown.isOver.value ? 'no step' : 'no step yet';
  const {optimizers, passes, end} = textsOf(data, frame);
  return [stepName(data.steps[frame]!), optimizers, passes, end, isBad(frame) && 'has NaN or infinity'].filter(Boolean).join(', ');
}

function textsOf(data: ModelData, frame: number): StepTexts {
  return stepTexts(stepFacts(data, frame), {chosen: choices.optimizer.value, offered: data.optimizers});
}

function isBad(frame: number): boolean {
  return badSpans.value.some(({from, to}) => to - from >= 1 && from < frame && frame < to);
}

/** The frame nearest to where the slider is; pressed where several steps share a pixel, the one with NaN or infinity. */
function framePointedAt(slider: HTMLInputElement, last: number): number {
  const {shares} = places.value;
  const frame = frameNear(shares, Number(slider.value) / Math.max(1, last));
  return isPointed.value ? nearestBad(badSpans.value, frame, framesWithin(shares, frame, 2 / Math.max(1, slider.clientWidth))) : frame;
}

/** One frame on or back, however far it is on the axis. */
function stepByArrow(event: KeyboardEvent): void {
  const by = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1}[event.key];
  if (by === undefined) return;
  event.preventDefault();
  stepBy(by);
}

function choose(frame: number): void {
  choices.step.value = stepToChoose(shown.data.value?.steps ?? [], frame);
}

function Readout() {
  const data = shown.data.value;
  const frame = shown.frame.value;
  if (!data || frame === null) return <span class="readout dim">{data && nothingText()}</span>;
  const clock = data.clock[frame];
  const name = data.session?.clock;
  const time = new Date((data.times[frame] as number) * 1000);
  const {optimizers, passes, end} = textsOf(data, frame);
  return (
    <output class="readout" title={stepTitle(stepFacts(data, frame)) || undefined}>
      <b>{stepName(data.steps[frame]!)}</b>
      {end && <b class="is-odd">{end}</b>}
      {optimizers && <span class="readout-optimizers">{optimizers}</span>}
      {passes && <span class="readout-passes">{passes}</span>}
      {isBad(frame) && <b class="is-bad">NaN or ∞</b>}
      {name && clock !== null && clock !== undefined && <span>{`${name} ${clockNumber(clock)}`}</span>}
      <span class="dim" title={time.toLocaleString()}>
        {time.toLocaleTimeString()}
      </span>
    </output>
  );
}

function nothingText(): string {
  const chosen = choices.optimizer.value;
  if (chosen !== null) return `No step by ${chosen}`;
  return shown.isOver.value ? 'No step was recorded' : 'No step recorded yet';
}
