/** How the step on show differs from an earlier or later one of the same run: as colours of the graph. */

import {computed, effect, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {stepName} from '../../numberText';
import {answers} from '../../api/client';
import {keepCurrent} from '../../api/current';
import {STATISTICS} from '../../api/types';
import type {StepStatistics} from '../../api/types';
import {frameAtStep} from '../../steps';
import {rowAt} from '../../statistics';
import type {NodeMeasure, Row} from '../../statistics';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {COMPARED_MEASURES} from './graph';
import type {DifferenceMeasure} from './graph';

const PREFIX = 'since.';
/** The measure that colours the graph when one asks for the difference without naming a measure. */
const USUAL = `${PREFIX}std`;

/** The recorded step that the one on show is compared with: the chosen one, else the one before; null without any. */
export const sinceStep: ReadonlySignal<number | null> = computed(() => {
  const steps = shown.data.value?.steps ?? [];
  const wanted = choices.since.value;
  const frame = wanted === null ? (shown.frame.value ?? 0) - 1 : frameAtStep(steps, wanted);
  return frame === null ? null : (steps[frame] ?? null);
});

/** The differences to that step by which nodes can be coloured, once somebody has asked for them. */
export const stepMeasures: ReadonlySignal<readonly DifferenceMeasure[]> = computed(() => {
  const since = sinceStep.value;
  if (since === null || (choices.since.value === null && !choices.colourBy.value.startsWith(PREFIX))) return [];
  return COMPARED_MEASURES.map((one) => sinceMeasure(one, since));
});

/** Magnitudes of layers differ by powers of ten, so their ratio is told; of shares and means, the difference. */
function sinceMeasure(one: NodeMeasure, step: number): DifferenceMeasure {
  const isRatio = !one.isSigned && one.name !== 'zero_fraction';
  return {
    ...one,
    name: PREFIX + one.name,
    label: isRatio ? `${one.label}: log₂ of its ratio to ${stepName(step)}` : `${one.label} − that of ${stepName(step)}`,
    isSigned: true,
    isDifference: true,
    counterpart: ({series}) => rowOf(series),
    between: isRatio ? (now, before) => Math.log2(one.of(now) / one.of(before)) : (now, before) => one.of(now) - one.of(before),
  };
}

/** The statistics at that step; null before they are there. */
const statistics: Signal<StepStatistics | null> = signal(null);

const rows: ReadonlySignal<ReadonlyMap<number, number>> = computed(() => new Map(Array.from(statistics.value?.series ?? [], (series, row) => [series, row])));

function rowOf(series: number): Row | null {
  const [row, values] = [rows.value.get(series), statistics.value?.statistics];
  return row === undefined || !values || values.length < (row + 1) * STATISTICS.length ? null : rowAt(values, row);
}

/** Colours the graph by how the step on show differs from `step`. */
export function colourSince(step: number): void {
  choices.since.value = step;
  choices.view.value = 'graph';
  if (!choices.colourBy.value.startsWith(PREFIX)) choices.colourBy.value = USUAL;
}

/** Has the statistics of that step fetched while the graph is coloured by it. */
export function startFollowingSince(): void {
  const want = keepCurrent<StepStatistics>(() => undefined); // the poll says what is wrong
  effect(() => {
    const [model, step, epoch] = [shown.model.value, sinceStep.value, shown.data.value?.epoch];
    const isWanted = choices.colourBy.value.startsWith(PREFIX) && epoch !== undefined;
    if (statistics.peek()?.step !== step || !isWanted) statistics.value = null;
    if (model === null || step === null || !isWanted) return want(null);
    want({
      key: JSON.stringify([model.name, epoch, step]),
      version: null,
      fetch: (abort) => answers.frame(model.name, step, abort),
      show: (answer) => (statistics.value = answer),
    });
  });
}
