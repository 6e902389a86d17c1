/** The step on show, chosen by a slider; without a choice the latest is followed. */

import {signal} from '@preact/signals';
import {clockNumber} from '../../charts/format';
import {nearestBad} from './badSteps';
import {stepBy} from '../state/navigate';
import {stepToChoose} from '../../steps';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Icon, IconButton} from '../controls/Icon';
import {toggle, toggleLabel} from '../layout/sides';
import {badSpans, TimeMarks} from './TimeMarks';

/** The slider is moved by a pointer, which cannot tell many steps on one pixel apart. */
const isPointed = signal(false);

export function TimeBar() {
  const data = shown.data.value;
  const frame = shown.frame.value;
  const last = (data?.steps.length ?? 0) - 1;
  const isFollowing = choices.step.value === null;
  return (
    <footer class="time-bar" aria-label="Step">
      <IconButton icon="previous" label="Step back (,)" onPress={() => stepBy(-1)} disabled={!frame} />
      <IconButton icon="next" label="Step forward (.)" onPress={() => stepBy(1)} disabled={isFollowing || frame === null} />
      <Readout />
      <div class="time-track">
        <TimeMarks />
        <input
          type="range"
          class="time-slider"
          aria-label="Step"
          aria-valuetext={frame === null ? 'no step yet' : `step ${data?.steps[frame]}${isBad(frame) ? ', has NaN or infinity' : ''}`}
          min={0}
          max={Math.max(0, last)}
          step={1}
          value={frame ?? 0}
          disabled={last < 1}
          style={{'--share': `${last > 0 ? (100 * (frame ?? 0)) / last : 0}%`}}
          onPointerDown={() => (isPointed.value = true)}
          onPointerUp={() => (isPointed.value = false)}
          onPointerCancel={() => (isPointed.value = false)}
          onInput={({currentTarget: slider}) => choose(framePointedAt(slider, last))}
        />
      </div>
      <span class="time-last dim">{last >= 0 ? data?.steps[last] : ''}</span>
      <button
        type="button"
        class="button follow"
        aria-pressed={isFollowing}
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

function isBad(frame: number): boolean {
  return badSpans.value.some(({from, to}) => to - from >= 1 && from < frame && frame < to);
}

/** What the slider says; pressed where several steps share a pixel, the one with NaN or infinity. */
function framePointedAt(slider: HTMLInputElement, last: number): number {
  const frame = Number(slider.value);
  return isPointed.value ? nearestBad(badSpans.value, frame, (2 * last) / Math.max(1, slider.clientWidth)) : frame;
}

function choose(frame: number): void {
  choices.step.value = stepToChoose(shown.data.value?.steps ?? [], frame);
}

function Readout() {
  const data = shown.data.value;
  const frame = shown.frame.value;
  if (!data || frame === null) return <span class="readout dim">{data && 'No step recorded yet'}</span>;
  const clock = data.clock[frame];
  const name = data.session?.clock;
  const time = new Date((data.times[frame] as number) * 1000);
  return (
    <output class="readout">
      <b>step {data.steps[frame]}</b>
      {isBad(frame) && <b class="is-bad">NaN or ∞</b>}
      {name && clock !== null && clock !== undefined && <span>{`${name} ${clockNumber(clock)}`}</span>}
      <span class="dim" title={time.toLocaleString()}>
        {time.toLocaleTimeString()}
      </span>
    </output>
  );
}
