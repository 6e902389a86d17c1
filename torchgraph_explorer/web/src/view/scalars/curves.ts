/** The curves in a scalar's chart: one a run, and of each run one a label. */

import type {ScalarValues} from '../../api/types';
import {runColour, runDashes} from '../../comparison/choice';
import type {Model} from '../../model/model';
import type {ScalarData} from '../../model/scalars';

/** A model of a run whose scalars are shown. */
export interface ShownRun {
  model: Model;
  /** 0 for the run on show. */
  number: number;
  label: string;
}

/** The values of a run that were logged with one label. */
export interface Curve extends ShownRun {
  values: ScalarValues;
  /** That with which the values were logged; null without one. */
  tag: string | null;
  /** Place of the label in all charts; 0 without a label. */
  place: number;
}

/** The labels of all runs, in the order of first logging. */
function labelsIn(all: readonly (ScalarData | null)[]): string[] {
  return [...new Set(all.flatMap((data) => data?.scalars.flatMap(({label}) => label ?? []) ?? []))];
}

/** The runs' curves of the scalar `name`, as far as their values have come. */
export function curvesOf(runs: readonly ShownRun[], name: string): Curve[] {
  const labels = labelsIn(runs.map(({model}) => model.scalars.data.value));
  return runs.flatMap((run) => {
    const data = run.model.scalars.data.value;
    const found = (data?.scalars ?? []).flatMap((one, number) => {
      const values = data?.values.get(number);
      if (one.name !== name || values === undefined) return [];
      return [{...run, values, tag: one.label ?? null, place: one.label === undefined ? 0 : labels.indexOf(one.label) + 1}];
    });
    return found.sort((a, b) => a.place - b.place);
  });
}

/** How a line is drawn. */
export interface LineLook {
  /** Null for the colour of a single line. */
  colour: string | null;
  dashes: readonly number[];
}

const DASHES = [[], [5, 3], [2, 2.5], [9, 3, 2, 3]];

/** Runs differ in colour. Labels do too in the chart of one run, and else in their dashes. */
export function lookOf({number, place}: Pick<Curve, 'number' | 'place'>, {isCompared, hasLabels}: {isCompared: boolean; hasLabels: boolean}): LineLook {
  if (isCompared) return {colour: runColour(number), dashes: hasLabels ? DASHES[place % DASHES.length]! : runDashes(number)};
  return hasLabels ? {colour: runColour(place), dashes: runDashes(place)} : {colour: null, dashes: []};
}
