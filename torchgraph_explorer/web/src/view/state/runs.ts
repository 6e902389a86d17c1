/** The runs that the server has, and whether it answers. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {RunInfo} from '../../api/types';
import * as choices from './choices';

export type Connection = 'loading' | 'live' | 'empty' | 'missing' | 'retrying' | 'finished';

export const logdir: Signal<string> = signal('');
export const runs: Signal<RunInfo[] | null> = signal(null);
export const connection: Signal<Connection> = signal<Connection>('loading');
/** What went wrong and what happens next, as a sentence. */
export const problem: Signal<string | null> = signal(null);
/** When the next try is made after a failure, in milliseconds of `performance.now()`; null while all is well. */
export const retryAt: Signal<number | null> = signal(null);

/** The run on show, as the list of runs has it. */
export const chosenRun: ReadonlySignal<RunInfo | undefined> = computed(() => runs.value?.find(({run}) => run === choices.run.value));
