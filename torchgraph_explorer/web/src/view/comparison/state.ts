/** The runs that are compared with the one on show: opened while they are chosen, at the steps beside its own. */

import {computed, effect, signal, untracked} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {Answers} from '../../api/answers';
import {chartAnswers, page, precedence} from '../../api/client';
import {mayPass, messageOf} from '../../api/errors';
import type {RunInfo, SeriesInfo} from '../../api/types';
import type {Setting} from '../../charts/setting';
import type {TimeAxis} from '../../charts/timeAxis';
import {scalarOf} from '../../charts/timeAxis';
import {frameBeside, jointAxis} from '../../comparison/alignment';
import {isSame, MOST_RUNS, withRun} from '../../comparison/choice';
import type {ComparedRun} from '../../comparison/choice';
import {matchSeries} from '../../comparison/matching';
import type {Matching} from '../../comparison/matching';
import {shortNames} from '../../comparison/names';
import {parseRenames} from '../../comparison/renames';
import type {Renames} from '../../comparison/renames';
import {hostRunFilter} from '../../host/tensorboard';
import {Model} from '../../model/model';
import {settingOf} from '../panels/setting';
import {timesOf} from '../state/axis';
import * as choices from '../state/choices';
import {mostBins} from '../state/room';
import {filtered} from '../state/runFilter';
import {runs as known} from '../state/runs';
import * as shown from '../state/shown';

/** A run of the comparison. The first one is the one on show, with which the others are compared. */
export interface Compared {
  /** 0 for the run on show. */
  number: number;
  run: string;
  model: Model;
  /** Its name without what all have in common. */
  label: string;
  setting: Setting;
  /** Of the others: which of their series each of ours is; null before both have answered. */
  matching: ReadonlySignal<Matching | null>;
}

interface Opened {
  model: Model;
  /** Why nothing is known of it, or nothing new, and whether that may pass; null while all is well. */
  problem: Signal<Problem | null>;
  /** When the run was last written, as the list of runs had it when it was asked for news. */
  written: number | null;
  matching: ReadonlySignal<Matching | null>;
  setting: Setting;
  close: () => void;
}

interface Problem {
  text: string;
  mayPass: boolean;
}

const opened = signal<ReadonlyMap<string, Opened>>(new Map());

/** Which others are chosen, without the run on show. */
export const chosenOthers: ReadonlySignal<readonly ComparedRun[]> = computed(() => {
  const {runs, isAll} = choices.comparison.value;
  const main = {run: choices.run.value ?? '', model: choices.model.value ?? ''};
  const all = isAll ? runsMatching(known.value ?? [], main.model, choices.runFilter.value) : filtered(runs, hostRunFilter.value).runs;
  return all.filter((one) => !isSame(one, main));
});

/** How many chosen runs TensorBoard's filter leaves out. */
export const hiddenByHost: ReadonlySignal<number> = computed(() => {
  const {runs, isAll} = choices.comparison.value;
  return isAll ? 0 : runs.length - filtered(runs, hostRunFilter.value).runs.length;
});

/** Every run that matches the filter, with its model of this name, or its first. */
function runsMatching(all: readonly RunInfo[], model: string, filter: string): readonly ComparedRun[] {
  const main = choices.run.value;
  const found = filtered(all, filter).runs.filter(({run, models}) => models.length > 0 && run !== main);
  return found.slice(0, MOST_RUNS).reduce<readonly ComparedRun[]>((runs, one) => withRun(runs, {run: one.run, model: modelOf(one, model)}), []);
}

/** The model of a run that is compared with the model called `name`. */
export function modelOf({models}: Pick<RunInfo, 'models'>, name: string | null): string {
  return name !== null && models.includes(name) ? name : (models[0] ?? '');
}

export const renames: ReadonlySignal<Renames> = computed(() => parseRenames(choices.comparison.value.renames));

/** Everything that is compared, the run on show first; empty while there is only that. */
export const compared: ReadonlySignal<readonly Compared[]> = computed(() => {
  const main = shown.model.value;
  const others = chosenOthers.value.flatMap((one) => {
    const found = opened.value.get(idOf(one));
    return found === undefined ? [] : [{...found, number: one.number, run: one.run}];
  });
  if (main === null || others.length === 0) return [];
  const labels = shortNames([main.name, ...others.map(({model}) => model.name)]);
  const all = [{number: 0, run: main.name.run, model: main, setting: mainSetting.value!, matching: NOT_MATCHED}, ...others];
  return all.map(({number, run, model, setting, matching}, i) => ({number, run, model, setting, matching, label: labels[i]!}));
});

/** Differs for charts of other runs, which begin anew. */
export function keyOf(runs: readonly Compared[], series: SeriesInfo): string {
  return JSON.stringify([series.series, ...runs.map(({number, model}) => [number, model.name])]);
}

const NOT_MATCHED: ReadonlySignal<Matching | null> = signal(null);

export const isComparing: ReadonlySignal<boolean> = computed(() => compared.value.length > 0);

/** The run with which the graph is compared. */
export const against: ReadonlySignal<Compared | null> = computed(() => {
  const others = compared.value.slice(1);
  return others.find(({number}) => number === choices.comparison.value.against) ?? others[0] ?? null;
});

/** Why the runs that could not be read are not there. */
export const problems: ReadonlySignal<readonly string[]> = computed(() =>
  [...opened.value.values()].flatMap(({problem, model}) => (problem.value === null ? [] : [`${model.name.run}: ${problem.value.text}`])),
);

const axes: ReadonlySignal<readonly TimeAxis[]> = computed(() => {
  const main = shown.model.value;
  const models = [...(main === null ? [] : [main]), ...[...opened.value.values()].map(({model}) => model)];
  return models.map((model) => timesOf(model).axis.value);
});

const mainSetting: ReadonlySignal<Setting | null> = computed(() => {
  const model = shown.model.value;
  return model && {...settingOf(model), axis: jointAxisOf(model)};
});

function jointAxisOf(model: Model): ReadonlySignal<TimeAxis> {
  return computed(() => {
    const own = timesOf(model).axis.value;
    const main = shown.model.value;
    return jointAxis(own, axes.value, main === null ? own.kind : timesOf(main).axis.value.kind);
  });
}

/** Opens the chosen runs and closes those that no longer are. */
export function startComparing(): void {
  if (page !== null && page.others.length > 0 && !/[#&]with=/.test(location.hash)) change({runs: page.others.reduce(withRun, [])});
  effect(() => {
    const wanted = chosenOthers.value;
    untracked(() => open(wanted));
  });
}

function open(wanted: readonly ComparedRun[]): void {
  const before = opened.peek();
  const ids = new Set(wanted.map(idOf));
  if (ids.size === before.size && [...ids].every((id) => before.has(id))) return;
  for (const [id, one] of before) if (!ids.has(id)) one.close();
  opened.value = new Map(wanted.map((one) => [idOf(one), before.get(idOf(one)) ?? openOne(one)]));
}

function idOf({run, model}: Pick<ComparedRun, 'run' | 'model'>): string {
  return JSON.stringify([run, model]);
}

const NO_GRAPH = signal<number | null>(null);

function openOne({run, model: name}: ComparedRun): Opened {
  const slot = signal<Model | null>(null);
  const step = computed(() => (slot.value === null ? null : stepBeside(slot.value)));
  const model = new Model({run, model: name}, {step, graph: NO_GRAPH, mostBins}, quiet(chartAnswers));
  slot.value = model;
  const problem = signal<Problem | null>(null);
  void ask({model, problem});
  const stop = effect(() => {
    const scalar = scalarOf(shown.chart.value.time);
    return scalar === null ? undefined : model.scalars.want(scalar);
  });
  const close = (): void => (stop(), model.close());
  const found = computed(() => {
    const [ours, theirs] = [shown.data.value, model.data.value];
    return ours && theirs && matchSeries(ours.series, theirs.series, renames.value.rules);
  });
  return {model, problem, written: lastWrite(run), matching: found, setting: settingBeside(model), close};
}

/** Charts come first. What is asked of the run on show alone costs the server most: rules, and the search for NaN. */
function quiet(from: Answers): Answers {
  const isAxis = (): boolean => scalarOf(shown.chart.peek().time) !== null;
  return {
    ...from,
    graph: (...asked) => precedence.later(() => from.graph(...asked)),
    frame: (...asked) => precedence.later(() => from.frame(...asked)),
    scalars: (...asked) => (isAxis() ? from.scalars(...asked) : precedence.later(() => from.scalars(...asked))),
    findings: async () => ({version: '', is_same: true, is_complete: true}),
    nonfinite: async (_, {epoch, frames}) => ({epoch, frames, from: frames, bad: [], first: null, others: [], is_complete: true, are_others_complete: true}),
  };
}

async function ask({model, problem}: Pick<Opened, 'model' | 'problem'>, abort = new AbortController().signal): Promise<void> {
  try {
    await model.update(abort);
    problem.value = null;
  } catch (cause) {
    if (!abort.aborted) problem.value = {text: messageOf(cause), mayPass: mayPass(cause)};
  }
}

function lastWrite(run: string): number | null {
  return known.peek()?.find((one) => one.run === run)?.last_write ?? null;
}

/** Asks what is new of the runs that are still written, were written again, or failed to answer, and of the others once in a while. */
export async function updateCompared(abort: AbortSignal, isTurnOfFinished: boolean): Promise<void> {
  const isWritten = ({data}: Model): boolean => data.peek() !== null && data.peek()?.finished == null;
  const hasAnswered = ({model, problem}: Opened): boolean => model.data.peek() !== null || problem.peek() !== null;
  const isDue = ({model, problem, written}: Opened): boolean => written !== lastWrite(model.name.run) || (problem.peek()?.mayPass ?? isWritten(model));
  const due = [...opened.peek().values()].filter((one) => isTurnOfFinished || (hasAnswered(one) && isDue(one)));
  for (const one of due) one.written = lastWrite(one.model.name.run);
  await Promise.all(due.map((one) => ask(one, abort)));
}

/** The step of another run that stands beside the one on show; null while there is none. */
function stepBeside(model: Model): number | null {
  const [main, frame] = [shown.model.value, shown.frame.value];
  if (main === null || frame === null) return null;
  const beside = frameBeside(timesOf(main).axis.value, frame, timesOf(model).axis.value);
  return model.data.value?.steps[beside ?? -1] ?? null;
}

/** A run's strips. What is pointed at or pressed there is the nearest step of the run on show. */
function settingBeside(model: Model): Setting {
  return {
    ...settingOf(model),
    axis: jointAxisOf(model),
    pointed: {
      get value() {
        return translated(choices.pointedStep.value, shown.model.value, model);
      },
      set value(step) {
        choices.pointedStep.value = translated(step, model, shown.model.peek());
      },
    },
    choose: (step) => (choices.step.value = step === null ? lastOf(model) : translated(step, model, shown.model.peek())),
  };
}

/** The last frame of another run follows the latest one only where ours is beside it. */
function lastOf(model: Model): number | null {
  const step = translated(model.data.peek()?.steps.at(-1) ?? null, model, shown.model.peek());
  return step === shown.data.peek()?.steps.at(-1) ? null : step;
}

/** The step of one model that stands beside a step of another. */
function translated(step: number | null, from: Model | null, to: Model | null): number | null {
  const frame = step === null ? -1 : (from?.data.value?.steps.indexOf(step) ?? -1);
  if (from === null || to === null || frame < 0) return null;
  const beside = frameBeside(timesOf(from).axis.value, frame, timesOf(to).axis.value);
  return to.data.value?.steps[beside ?? -1] ?? null;
}

/** Chooses a run, or no longer. */
export function toggleRun(one: {run: string; model: string}): void {
  const chosen = choices.comparison.peek().isAll ? chosenOthers.peek() : choices.comparison.peek().runs;
  const isThere = chosen.some((other) => isSame(one, other));
  const runs = isThere ? chosen.filter((other) => !isSame(one, other)) : withRun(chosen, one);
  change({runs, isAll: false});
}

export function change(part: Partial<typeof choices.comparison.value>): void {
  choices.comparison.value = {...choices.comparison.peek(), ...part};
}

/** Shows another run of the comparison, and compares the one that was on show with it. */
export function exchange({run, model}: {run: string; model: string}): void {
  const main = {run: choices.run.peek(), model: choices.model.peek()};
  if (main.run === null || main.model === null) return;
  const chosen = choices.comparison.peek().isAll ? chosenOthers.peek() : choices.comparison.peek().runs;
  const before = chosen.find((one) => isSame(one, {run, model}));
  const left = chosen.filter((one) => !isSame(one, {run, model}));
  const runs = before === undefined ? withRun(left, main as {run: string; model: string}) : [...left, {run: main.run, model: main.model, number: before.number}];
  change({runs, isAll: false});
}
