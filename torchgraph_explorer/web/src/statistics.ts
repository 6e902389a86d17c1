/** What can be read off a row of statistics: by the graph's colours and by the panels' lines. */

import {STATISTICS} from './api/types';
import type {Kind, Statistic} from './api/types';

/** The statistics of one series at one frame. */
export type Row = Record<Statistic, number>;

/** Row `row` of a statistics matrix, by name. */
export function rowAt(statistics: Float32Array, row: number): Row {
  const start = row * STATISTICS.length;
  return Object.fromEntries(STATISTICS.map((name, column) => [name, statistics[start + column] ?? NaN])) as Row;
}

export interface Measure {
  name: string;
  label: string;
  of: (row: Row) => number;
  /** Values of both signs mean something: colours diverge from zero. */
  isSigned: boolean;
}

export const MEASURES: readonly Measure[] = [
  {name: 'mean', label: 'Mean', of: (row) => row.mean, isSigned: true},
  {name: 'std', label: 'Standard deviation', of: (row) => row.std, isSigned: false},
  {name: 'rms', label: 'Root mean square', of: (row) => Math.hypot(row.mean, row.std), isSigned: false},
  {name: 'absolute_mean', label: 'Absolute mean', of: (row) => row.absolute_mean, isSigned: false},
  {name: 'l2_norm', label: 'L2 norm', of: (row) => row.l2_norm, isSigned: false},
  {name: 'min', label: 'Minimum', of: (row) => row.min, isSigned: true},
  {name: 'max', label: 'Maximum', of: (row) => row.max, isSigned: true},
  {name: 'largest', label: 'Largest magnitude', of: (row) => Math.max(Math.abs(row.min), Math.abs(row.max)), isSigned: false},
  {name: 'zero_fraction', label: 'Share of zeros', of: (row) => row.zeros / row.sampled, isSigned: false},
  {name: 'nonfinite', label: 'NaN and infinite', of: nonfinite, isSigned: false},
];

/** How many elements were NaN or infinite. */
export function nonfinite(row: Row): number {
  return row.nan + row.positive_infinity + row.negative_infinity;
}

/** The measure called `name`; the first one for an unknown name. */
export function measureNamed(name: string): Measure {
  return MEASURES.find((one) => one.name === name) ?? (MEASURES[0] as Measure);
}

/** A measure of a call's output, for colouring its node. */
export interface NodeMeasure extends Measure {
  kind: Kind;
  /** It counts NaN and infinity, so that it has a value where there are some. */
  isCount: boolean;
  /** What is said of a node that it does not apply to. */
  empty?: string;
}

export const NODE_MEASURES: readonly NodeMeasure[] = [
  ofOutput('std', 'Output std'),
  ofOutput('absolute_mean', 'Output absolute mean'),
  ofOutput('mean', 'Output mean'),
  ofOutput('max', 'Output maximum'),
  ofOutput('zero_fraction', 'Output share of zeros'),
  ofOutput('nonfinite', 'Output NaN and infinite'),
  {name: 'grad_norm', label: 'Gradient norm, mean', kind: 'grad_norm', of: (row) => row.mean, isSigned: false, isCount: false},
  {name: 'grad_nonfinite', label: 'Gradient NaN and infinite', kind: 'grad_norm', of: nonfinite, isSigned: false, isCount: true},
];

/** What a call took, where that is recorded. */
export const COST_MEASURES: readonly NodeMeasure[] = [
  {name: 'time', label: 'Time of forward, s', kind: 'time', of: (row) => row.mean, isSigned: false, isCount: false},
  {name: 'memory', label: 'Memory of outputs, bytes', kind: 'memory', of: (row) => row.mean, isSigned: false, isCount: false},
];

/** Measures of all parameters of a call's module and of what it consists of, together. */
export const PARAMETER_MEASURES: readonly NodeMeasure[] = [
  ofParameters('param_norm', 'Parameters, norm', 'value', (row) => row.l2_norm),
  ofParameters('param_grad', 'Gradient of parameters, norm', 'grad', (row) => row.l2_norm),
  ofParameters('update_norm', 'Update of parameters, norm', 'update', (row) => row.l2_norm),
  ofParameters('update_ratio', 'Update ratio, largest', 'update_ratio', (row) => row.max),
];

function ofParameters(name: string, label: string, kind: Kind, of: (row: Row) => number): NodeMeasure {
  return {name, label, kind, of, isSigned: false, isCount: false, empty: 'no parameters'};
}

function ofOutput(name: string, label: string): NodeMeasure {
  return {...measureNamed(name), label, kind: 'value', isCount: name === 'nonfinite'};
}
