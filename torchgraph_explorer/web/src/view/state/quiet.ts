/** Whether the training still writes: the server answers also when the training was killed. */

import {computed, effect, signal, type ReadonlySignal} from '@preact/signals';

import {connection} from './runs';
import type {Connection} from './runs';
import * as shown from './shown';

/** Seconds without a step after which that is said, at least. */
const LEAST = 120;
/** And so many times as long as the longest of the last waits. */
const TIMES = 5;
const LAST = 20;
/** After the first step, when no wait is known yet. */
const UNKNOWN = 1800;
const LOOK_MS = 5000;

const now = signal(Date.now());
/** When the last step came, in milliseconds of this page's clock; null while it has none. */
const heard = signal<number | null>(null);

/** How long a wait for a step is usual at these times, in seconds: within it, nothing is said. */
export function patience(times: readonly number[]): number {
  if (times.length < 2) return UNKNOWN;
  const last = times.slice(-LAST);
  const waits = last.slice(1).map((time, i) => time - last[i]!);
  return Math.max(LEAST, TIMES * Math.max(0, ...waits));
}

/** For how long no step has come, in seconds; 0 while that is not unusual. */
export const quietSeconds: ReadonlySignal<number> = computed(() => {
  const times = shown.data.value?.times ?? [];
  if (heard.value === null) return 0;
  const seconds = (now.value - heard.value) / 1000;
  return seconds > patience(times) ? seconds : 0;
});

/** The connection to the server, and whether anything comes. */
export const liveness: ReadonlySignal<Connection | 'quiet' | 'stopped'> = computed(() => {
  if (!['loading', 'live'].includes(connection.value)) return connection.value;
  if (shown.data.value?.finished) return 'finished'; // though other answers are awaited
  if (connection.value === 'loading') return 'loading';
  if (shown.data.value?.stopped) return 'stopped';
  return quietSeconds.value > 0 ? 'quiet' : 'live';
});

/** `40 s`, `12 min`, `3 h`, `2 days`. */
export function durationText(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return seconds < 36 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

let known = '';

/** What comes first of a model is no news: it may be that of a training that was killed long ago. */
function forget(): void {
  known = '';
  heard.value = null;
}

/** Looks at the clock, until the page is closed. */
export function watchForQuiet(): void {
  setInterval(() => (now.value = Date.now()), LOOK_MS);
  effect(() => {
    const {model, data} = shown;
    if (data.value === null) return forget();
    const {times} = data.value;
    const name = JSON.stringify(model.value?.name ?? null);
    // A step that comes is news at once, whatever the clock of the machine that trains says.
    const isNew = known.startsWith(`${name} `);
    if (known === `${name} ${times.length}`) return;
    known = `${name} ${times.length}`;
    heard.value = times.length === 0 ? null : isNew ? Date.now() : Math.min(Date.now(), 1000 * times.at(-1)!);
    now.value = Date.now();
  });
}
