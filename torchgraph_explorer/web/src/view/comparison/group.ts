/** The charts of one series in all runs: what they fetch, and what they share. */

import {computed, useComputed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import type {SeriesHistory, SeriesInfo} from '../../api/types';
import type {StripRoom} from '../../charts/layout';
import {NARROWEST} from '../../charts/Strip';
import type {Together} from '../../charts/Strip';
import type {Scene, SceneInput} from '../../charts/scene';
import {scenesTogether} from '../../comparison/together';
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
  together: (part: number) => Together;
}

/** What the strips of all runs share. */
export function useGroup(parts: readonly RunSeries[], room: StripRoom): Group {
  const byWidth = useMemo(() => new Map<number, ReadonlySignal<readonly (Scene | null)[]>>(), [parts]);
  return useMemo(() => {
    const scenesAt = (width: number): readonly (Scene | null)[] => {
      if (width < NARROWEST) return parts.map(() => null);
      const known = byWidth.get(width) ?? computed(() => workOut(parts, width, room));
      byWidth.set(width, known);
      return known.value;
    };
    const watch = (): void => parts.forEach(({history, run: {setting}}) => void [history.value, setting.axis.value, setting.options.value]);
    return {scenesAt, watch, together: (part) => ({room, watch, sceneAt: (width) => scenesAt(width)[part] ?? null})};
  }, [parts]);
}

function workOut(parts: readonly RunSeries[], width: number, room: StripRoom): (Scene | null)[] {
  const inputs = parts.map(({history, run: {setting}}): SceneInput | null => {
    const now = history.value;
    const [options, axis] = [setting.options.value, setting.axis.value];
    return now === null ? null : {history: now, options, axis, width, room};
  });
  const scenes = scenesTogether(inputs.filter((one) => one !== null));
  return inputs.map((one) => (one === null ? null : scenes.shift()!));
}

/** The options of the run on show are those of all. */
export function useMode(runs: readonly Compared[]): ReadonlySignal<'strips' | 'plot' | 'steps'> {
  return useComputed(() => {
    const {mode, runs: how} = runs[0]!.setting.options.value;
    if (mode === 'ridge' || mode === 'overlay') return 'steps';
    return mode === 'heat' || how === 'beside' ? 'strips' : 'plot';
  });
}
