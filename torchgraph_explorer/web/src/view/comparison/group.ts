/** The charts of one series in all runs: what they fetch, and what they share. */

import {computed, effect, signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import type {SeriesHistory, SeriesInfo} from '../../api/types';
import {useDerived} from '../../charts/derived';
import type {StripRoom} from '../../charts/layout';
import {NARROWEST} from '../../charts/Strip';
import type {Together} from '../../charts/Strip';
import type {Scene, SceneInput} from '../../charts/scene';
import {ScenesTogether} from '../../comparison/together';
import {lacksHistograms} from '../../history';
import type {Compared} from './state';

/** A run's part of a chart. */
export interface RunSeries {
  run: Compared;
  /** Null where the run has no counterpart; of a run that has not answered yet, undefined. */
  series: SeriesInfo | null | undefined;
  history: ReadonlySignal<SeriesHistory | null>;
  /** Where the frame on show is looked up. */
  chosen: ReadonlySignal<SeriesHistory | null>;
}

/** The series of the run on show, and its counterparts. Fetched while the component is there. */
export function useRunSeries(runs: readonly Compared[], main: SeriesInfo): RunSeries[] {
  const found = useMemo(() => runs.map((run) => partOf(run, main)), [runs, main.series, ...runs.map(({matching}) => matching.value)]);
  useEffect(() => {
    const ends = found.flatMap(({run: {model}, series, history}) =>
      series ? [model.histories.want(series.series), model.closeUps.want(series.series, history)] : [],
    );
    return () => ends.forEach((end) => end());
  }, [found]);
  return found;
}

function partOf(run: Compared, main: SeriesInfo): RunSeries {
  const {model, number, matching} = run;
  const matched = matching.value;
  const series = number === 0 ? main : matched === null ? undefined : (matched.series.get(main.series) ?? null);
  if (!series) return {run, series, history: NOTHING, chosen: NOTHING};
  const history = model.histories.of(series.series);
  return {run, series, history, chosen: model.closeUps.of(series.series, history)};
}

const NOTHING: ReadonlySignal<SeriesHistory | null> = computed(() => null);

export interface Group {
  /** The scenes of the parts at a width, in their order; null for those without a history yet. */
  scenesAt: (width: number) => readonly (Scene | null)[];
  watch: () => void;
  /** Does some of the work for the scenes at a width; true when they are there. */
  prepare: (width: number) => boolean;
  /** By part. */
  together: readonly Together[];
}

type Histories = readonly (SeriesHistory | null)[];

/** What the strips of all runs share. */
export function useGroup(parts: readonly RunSeries[], room: StripRoom): Group {
  const histories = useGathered(parts);
  const byWidth = useMemo(() => new Map<number, ReadonlySignal<Work>>(), [parts]);
  return useMemo(() => {
    const workAt = (width: number): Work => {
      const known = byWidth.get(width) ?? computed(() => workOf(parts, histories.value, {width, room}));
      byWidth.set(width, known);
      return known.value;
    };
    const scenesAt = (width: number): readonly (Scene | null)[] => (width < NARROWEST ? parts.map(() => null) : scenesOf(workAt(width)));
    const prepare = (width: number): boolean => width < NARROWEST || workAt(width).together.step();
    const watch = (): void => parts.forEach(({run: {setting}}) => void [histories.value, setting.axis.value, setting.options.value]);
    const roomNow = (): StripRoom => ({...room, hasBars: room.hasBars !== false && haveBars(histories.value)});
    const together = parts.map((_, part): Together => ({room: roomNow, watch, prepare, sceneAt: (width) => scenesAt(width)[part] ?? null}));
    return {scenesAt, watch, prepare, together};
  }, [parts, histories]);
}

/** As the scenes have it; before the first history has come, they are expected. */
function haveBars(histories: Histories): boolean {
  const known = histories.filter((one) => one !== null);
  return known.length === 0 || known.some((one) => !lacksHistograms(one));
}

/** Until all histories have come, those that have are shown so often: each one changes the axis that all share. */
const GATHER_MS = 400;

/** The histories of the parts, taken together when the last one has come, and when one has changed. */
function useGathered(parts: readonly RunSeries[]): ReadonlySignal<Histories> {
  const gathered = useMemo(() => signal(parts.map(({history}) => history.peek())), [parts]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const take = (): void => {
      timer = undefined;
      gathered.value = parts.map(({history}) => history.peek());
    };
    const stop = effect(() => {
      const isWhole = parts.map(({series, history}) => history.value !== null || series === null).every(Boolean);
      if (isWhole) clearTimeout(timer);
      if (isWhole) take();
      else timer ??= setTimeout(take, GATHER_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [parts]);
  return gathered;
}

interface Work {
  together: ScenesTogether;
  /** Which parts have a history. */
  filled: readonly boolean[];
}

function workOf(parts: readonly RunSeries[], histories: Histories, {width, room}: {width: number; room: StripRoom}): Work {
  const inputs = parts.map(({run: {setting}}, part): SceneInput | null => {
    const history = histories[part] ?? null;
    const [options, axis] = [setting.options.value, setting.axis.value];
    return history === null ? null : {history, options, axis, width, room};
  });
  return {together: new ScenesTogether(inputs.filter((one) => one !== null)), filled: inputs.map((one) => one !== null)};
}

function scenesOf({together: {scenes}, filled}: Work): (Scene | null)[] {
  let next = 0;
  return filled.map((isFilled) => (isFilled ? scenes[next++]! : null));
}

/** The options of the run on show are those of all. */
export function useMode(runs: readonly Compared[]): ReadonlySignal<'strips' | 'plot' | 'steps'> {
  const {options} = runs[0]!.setting;
  return useDerived(() => {
    const {mode, runs: how} = options.value;
    if (mode === 'ridge' || mode === 'overlay') return 'steps';
    return mode === 'heat' || how === 'beside' ? 'strips' : 'plot';
  }, [options]);
}
