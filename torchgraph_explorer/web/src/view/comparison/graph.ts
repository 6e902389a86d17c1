/** How the graph on show differs from that of another run: modules, shapes, and statistics at the step on show. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {STATISTICS} from '../../api/types';
import type {SeriesInfo} from '../../api/types';
import {graphDifference, outermost} from '../../comparison/differences';
import type {GraphDifference} from '../../comparison/differences';
import {runLetter} from '../../comparison/choice';
import {parseKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {moduleNameOf} from '../../graph/labels';
import {MEASURES, NODE_MEASURES, nonfinite, rowAt} from '../../statistics';
import type {NodeMeasure, Row} from '../../statistics';
import type {NodeState} from '../../graph/nodeState';
import * as shown from '../state/shown';
import {against, renames} from './state';

const difference: ReadonlySignal<GraphDifference | null> = computed(() => {
  const [ours, theirs] = [shown.graph.value, against.value?.model.graph.value ?? null];
  return ours && theirs && graphDifference(ours, theirs, renames.value.rules);
});

/** What a node has that the other run does not have, or has otherwise. */
export interface NodeChange {
  kind: 'new' | 'shape' | 'class' | 'inside';
  /** For the badge. */
  text: string;
  words: string;
}

/** How the module of a call differs, or how many in it do; null where nothing does, and for other nodes. */
export function changeOf(key: NodeKey): NodeChange | null {
  const [found, other] = [difference.value, against.value];
  const parsed = parseKey(key);
  if (found === null || other === null || parsed?.kind !== 'call') return null;
  return ownChange(parsed.module, found, other.label, runLetter(other.number)) ?? insideChange(parsed.module);
}

function ownChange(module: string, {onlyOurs, shapes, classes}: GraphDifference, label: string, letter: string): NodeChange | null {
  if (onlyOurs.has(module)) return {kind: 'new', text: `not in ${letter}`, words: `not in ${label}`};
  const other = classes.get(module);
  if (other !== undefined) return {kind: 'class', text: `${letter}: ${other.theirs}`, words: `${other.theirs} in ${label}`};
  const found = shapes.get(module);
  if (found === undefined) return null;
  const texts = found.map(({tensor, theirs}) => `${tensor} ${theirs}`);
  return {kind: 'shape', text: 'other shape', words: `in ${label}: ${texts.slice(0, 4).join(', ')}`};
}

const changed: ReadonlySignal<readonly string[]> = computed(() => {
  const found = difference.value;
  return found === null ? [] : [...new Set([...found.onlyOurs, ...found.shapes.keys(), ...found.classes.keys()])];
});

function insideChange(module: string): NodeChange | null {
  const prefix = module === '' ? '' : `${module}.`;
  const gone = goneBy.value.get(module)?.length ?? 0;
  const count = changed.value.filter((name) => name !== module && name.startsWith(prefix)).length + gone;
  return count === 0 || module === '' ? null : {kind: 'inside', text: `${count} differ`, words: `${count} modules in it differ`};
}

/** Modules that only the other run has, by the name that the module they stand in has here; outermost ones only. */
const goneBy: ReadonlySignal<ReadonlyMap<string, readonly string[]>> = computed(() => {
  const found = difference.value;
  const by = new Map<string, string[]>();
  if (found === null) return by;
  const ours = new Map([...found.modules].map(([mine, theirs]) => [theirs, mine]));
  for (const name of outermost(found.onlyTheirs)) {
    const owner = ours.get(name.slice(0, Math.max(0, name.lastIndexOf('.')))) ?? '';
    by.set(owner, [...(by.get(owner) ?? []), name]);
  }
  return by;
});

/** Modules that the other run has in what is open here, and this run has not; with their classes. */
export const goneHere: ReadonlySignal<readonly {name: string; className: string}[]> = computed(() => {
  const [graph, inside] = [shown.graph.value, shown.inside.value];
  const theirs = against.value?.model.graph.value ?? null;
  if (graph === null || theirs === null) return [];
  const names = goneBy.value.get(inside === null ? '' : moduleNameOf(graph, inside)) ?? [];
  return names.map((name) => ({name, className: theirs.modules.find((one) => one.name === name)?.class_name ?? ''}));
});

/** A measure whose difference to another run, or another step, colours the nodes. */
export interface DifferenceMeasure extends NodeMeasure {
  isDifference: true;
  /** What a series has there; null without any. */
  counterpart: (series: SeriesInfo) => Row | null;
  /** How this one differs from that. */
  between: (row: Row, other: Row) => number;
}

const PREFIX = 'difference.';
/** What can be compared. */
export const COMPARED_MEASURES: readonly NodeMeasure[] = [
  ...MEASURES.filter(({name}) => name !== 'nonfinite').map((measure) => ({...measure, label: `Output ${measure.label.toLowerCase()}`, kind: 'value' as const, isCount: false})),
  ...NODE_MEASURES.filter(({name}) => name === 'grad_norm'),
];

/** The differences by which nodes can be coloured while runs are compared. */
export const differenceMeasures: ReadonlySignal<readonly DifferenceMeasure[]> = computed(() => {
  const other = against.value;
  if (other === null) return [];
  return COMPARED_MEASURES.map((one) => ({
    ...one,
    name: PREFIX + one.name,
    label: `${one.label} − that of ${runLetter(other.number)}`,
    isSigned: true,
    isDifference: true,
    counterpart,
    between: (row, their) => one.of(row) - one.of(their),
  }));
});

export function isDifference(measure: NodeMeasure): measure is DifferenceMeasure {
  return 'isDifference' in measure;
}

const otherRows: ReadonlySignal<ReadonlyMap<number, number>> = computed(
  () => new Map(Array.from(against.value?.model.statistics.value?.series ?? [], (series, row) => [series, row])),
);

/** The statistics of a series' counterpart at its step beside the one on show; null without any. */
function counterpart(series: SeriesInfo): Row | null {
  const other = against.value;
  const found = other?.matching.value?.series.get(series.series);
  const row = found === undefined ? undefined : otherRows.value.get(found.series);
  const statistics = other?.model.statistics.value?.statistics;
  return row === undefined || !statistics || statistics.length < (row + 1) * STATISTICS.length ? null : rowAt(statistics, row);
}

/** What a node is coloured by where it is the difference of a statistic; null where the other run, or step, has none. */
export function differenceState(series: SeriesInfo, row: Row, measure: DifferenceMeasure): NodeState | null {
  const other = measure.counterpart(series);
  if (other === null) return null;
  const lost = [row, other].find((one) => nonfinite(one) > 0);
  if (lost !== undefined) return {kind: 'nonfinite', row: lost};
  const value = measure.between(row, other);
  if (Number.isNaN(value)) return {kind: 'empty'};
  return value === 0 ? {kind: 'zero'} : {kind: 'value', value};
}
