/** The step on show, chosen by a slider; without a choice the latest is followed. */

import {clockNumber} from '../charts/format';
import {stepBy} from '../state/navigate';
import * as store from '../state/store';
import {Icon, IconButton} from './Icon';
import {toggle, toggleLabel} from './sides';

export function TimeBar() {
  const data = store.data.value;
  const frame = store.currentFrame.value;
  const last = (data?.steps.length ?? 0) - 1;
  const isFollowing = store.frame.value === null;
  return (
    <footer class="time-bar" aria-label="Step">
      <IconButton icon="previous" label="Step back (,)" onPress={() => stepBy(-1)} disabled={!frame} />
      <IconButton icon="next" label="Step forward (.)" onPress={() => stepBy(1)} disabled={isFollowing || frame === null} />
      <Readout />
      <input
        type="range"
        class="time-slider"
        aria-label="Step"
        aria-valuetext={frame === null ? 'no step yet' : `step ${data?.steps[frame]}`}
        min={0}
        max={Math.max(0, last)}
        step={1}
        value={frame ?? 0}
        disabled={last < 1}
        style={{'--share': `${last > 0 ? (100 * (frame ?? 0)) / last : 0}%`}}
        onInput={(event) => choose(Number(event.currentTarget.value), last)}
      />
      <span class="time-last dim">{last >= 0 ? data?.steps[last] : ''}</span>
      <button
        type="button"
        class="button follow"
        aria-pressed={isFollowing}
        aria-label="Follow latest"
        title="Always show the latest step (L)"
        onClick={() => (store.frame.value = null)}
      >
        <Icon name="latest" /> <span>Follow latest</span>
      </button>
      <IconButton icon="down" label={toggleLabel('steps')} onPress={() => toggle('steps')} isExpanded />
    </footer>
  );
}

function choose(frame: number, last: number): void {
  store.frame.value = frame >= last ? null : frame;
}

function Readout() {
  const data = store.data.value;
  const frame = store.currentFrame.value;
  if (!data || frame === null) return <span class="readout dim">{data && 'No step recorded yet'}</span>;
  const clock = data.clock[frame];
  const name = data.session?.clock;
  const time = new Date((data.times[frame] as number) * 1000);
  return (
    <output class="readout">
      <b>step {data.steps[frame]}</b>
      {name && clock !== null && clock !== undefined && <span>{`${name} ${clockNumber(clock)}`}</span>}
      <span class="dim" title={time.toLocaleString()}>
        {time.toLocaleTimeString()}
      </span>
    </output>
  );
}
