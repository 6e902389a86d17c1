/** Facts of the samples of each category over steps: a line for each category, all on one scale. Pure. */

import {group} from 'd3-array';
import type {TensorLine} from '../api/tensors';
import {linePlot} from './linePlot';
import type {LinePlot} from './linePlot';

export interface CategoryLine {
  category: string;
  steps: number[];
  values: number[];
  counts: number[];
  plot: LinePlot;
}

export interface CategoryPlot {
  /** Those with the largest latest mean first, so that a category is the same line in each plot. */
  lines: CategoryLine[];
  /** Categories that are not drawn. */
  others: number;
  low: number;
  high: number;
  first: number;
  last: number;
  /** Where the mean of a category that is drawn is NaN or infinite, in pixels. */
  bad: number[];
}

/** Lines that are drawn; more cannot be told apart. */
export const MOST_LINES = 8;

export function categoryPlot(line: TensorLine, column: string, box: {width: number; height: number}): CategoryPlot {
  const counts = line.columns.get('count') ?? new Float64Array(0);
  const means = line.columns.get('mean') ?? new Float64Array(0);
  // One sample does not differ from others.
  const of = (line.columns.get(column) ?? means).map((one, i) => (column === 'std' && (counts[i] as number) < 2 ? NaN : one));
  const rows = group(line.categories.keys(), (i) => line.categories[i] as string);
  const latest = (at: number[]): number => at.map((i) => means[i] as number).filter(Number.isFinite).at(-1) ?? -Infinity;
  const sorted = [...rows].sort(([, a], [, b]) => latest(b) - latest(a));
  const drawn = sorted.slice(0, MOST_LINES);
  const finite = drawn.flatMap(([, at]) => at.map((i) => of[i] as number)).filter(Number.isFinite);
  const [low, high] = finite.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);
  const [first, last] = line.step.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);
  const lines = drawn.map(([category, at]) => {
    const [steps, values] = [at.map((i) => line.step[i] as number), at.map((i) => of[i] as number)];
    const own = {category, steps, values, counts: at.map((i) => counts[i] as number)};
    return {...own, plot: linePlot(steps, values, box, {low, high}, {first, last})};
  });
  const isBad = (i: number): boolean => !Number.isFinite(means[i] as number) && (counts[i] as number) > 0;
  const bad = [...new Set(lines.flatMap(({plot}, n) => drawn[n]![1].flatMap((i, at) => (isBad(i) ? [plot.xs[at] as number] : []))))];
  return {lines, others: sorted.length - drawn.length, low: finite.length > 0 ? low : NaN, high: finite.length > 0 ? high : NaN, first, last, bad};
}
