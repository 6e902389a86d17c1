/** The model on show, and what follows from it and from what the user chose. */

import {computed, effect, signal, untracked} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {ModelName} from '../../api/answers';
import {chartAnswers, page} from '../../api/client';
import type {GraphInfo, ModuleGraph, NonFinite, StepStatistics} from '../../api/types';
import {CHART_DEFAULTS, recordedOptions} from '../../charts/options';
import type {ChartOptions} from '../../charts/options';
import {callKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import type {ModelData} from '../../model/data';
import {Model} from '../../model/model';
import type {Wishes} from '../../model/model';
import {seriesOfNode as seriesIn} from '../../model/series';
import type {NodeSeries} from '../../model/series';
import * as choices from './choices';
import {mostBins} from './room';

/** Null before its name is known. */
export const model: Signal<Model | null> = signal(null);

const wishes: Wishes = {step: choices.step, graph: choices.graphChoice, mostBins};

/** Opens the model that is chosen and closes the one before, for good. */
export function startShowing(): void {
  effect(() => {
    const [run, name, optimizer] = [choices.run.value, choices.model.value, choices.optimizer.value];
    untracked(() => show(run === null || name === null ? null : {run, model: name, ...(optimizer === null ? {} : {optimizer})}));
  });
}

let opening: Model | null = null;

function show(name: ModelName | null): void {
  const before = model.peek();
  stopOpening();
  if (before !== null && JSON.stringify(before.name) === JSON.stringify(name)) return;
  const isSame = before !== null && before.name.run === name?.run && before.name.model === name.model;
  const next = name && new Model(name, wishes, chartAnswers, isSame ? before : null);
  if (!isSame || next === null) return replace(next);
  // The steps of another optimizer: those before stay on show until these have come.
  opening = next;
  const show = (): void => void (opening === next && ((opening = null), replace(next)));
  next.update(new AbortController().signal).then(show, show);
}

function stopOpening(): void {
  opening?.close();
  opening = null;
}

function replace(next: Model | null): void {
  const before = model.peek();
  model.value = next;
  before?.close();
}

export const data: ReadonlySignal<ModelData | null> = computed(() => model.value?.data.value ?? null);
export const graph: ReadonlySignal<ModuleGraph | null> = computed(() => model.value?.graph.value ?? null);
export const statistics: ReadonlySignal<StepStatistics | null> = computed(() => model.value?.statistics.value ?? null);
export const nonfinite: ReadonlySignal<NonFinite | null> = computed(() => model.value?.nonfinite.value ?? null);
/** Nothing more will be recorded, as far as is known: the training has ended, or this is a page. */
export const isOver: ReadonlySignal<boolean> = computed(() => page !== null || data.value?.finished != null);
/** The number of the frame on show; null before the first. */
export const frame: ReadonlySignal<number | null> = computed(() => model.value?.frame.value ?? null);
/** The step on show; null before the first. */
export const step: ReadonlySignal<number | null> = computed(() => model.value?.step.value ?? null);
export const automaticGraph: ReadonlySignal<GraphInfo | null> = computed(() => model.value?.automaticGraph.value ?? null);
export const graphInfo: ReadonlySignal<GraphInfo | null> = computed(() => model.value?.graphInfo.value ?? null);

/** Chart options in force: what the user chose, else what the session was recorded with, else the defaults. */
export const chart: ReadonlySignal<ChartOptions> = computed(() => {
  const session = data.value?.session;
  const recorded = session ? recordedOptions(session) : {};
  return {...CHART_DEFAULTS, ...recorded, ...choices.chartChoice.value};
});

/** Key → index of every call of the graph. */
export const callIndex: ReadonlySignal<Map<NodeKey, number>> = computed(() => {
  const now = graph.value;
  return new Map((now?.calls ?? []).map((_, i) => [callKey(now as ModuleGraph, i), i]));
});

/** Index of the call that is open; null is the top. By default the model's own call; if it is called several times, see `calledFirst`. */
export const inside: ReadonlySignal<number | null> = computed(() => {
  const key = choices.insideKey.value;
  if (key === '') return null;
  const chosen = key === null ? undefined : callIndex.value.get(key);
  if (chosen !== undefined) return chosen;
  return graph.value === null ? null : firstOpened(graph.value);
});

/**
 * The top of a model that is called again and again, as for accumulated gradients, would be the same box many times. The inside
 * of one that calls nothing would be its inputs and outputs, without itself.
 */
function firstOpened({calls, modules, nodes}: ModuleGraph): number | null {
  const roots = calls.flatMap(({parent, module, call}, index) => (parent === null ? [{index, module: modules[module]?.name, call}] : []));
  const first = calledFirst(roots);
  if (first === undefined) return null;
  const isOne = roots.every(({module}) => module === first.module);
  const hasInside = calls.some(({parent}) => parent === first.index) || nodes.some(({inside, kind}) => inside === first.index && kind === 'attached');
  return isOne && hasInside ? first.index : null;
}

/** The first call that gradients come back to: others are made without them, as what a generator makes for its discriminator's step. */
function calledFirst<T extends {module: string | undefined; call: number}>(roots: readonly T[]): T | undefined {
  const graded = data.value?.series.filter(({kind}) => kind === 'grad_norm') ?? [];
  return roots.find((root) => graded.some(({module, call}) => module === root.module && call === root.call)) ?? roots[0];
}

/** The series of a node of the model on show, grouped as its panel shows them. */
export function seriesOfNode(key: NodeKey): NodeSeries {
  return seriesIn(data.value?.series ?? [], key);
}
