/** What the graph pane shows: the layout of the open call, and each node's value. */

import {computed, effect, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {group} from 'd3-array';
import {messageOf} from '../../api/errors';
import {keepCurrent} from '../../api/current';
import {STATISTICS} from '../../api/types';
import type {Layout, ModuleGraph, Node, SeriesInfo} from '../../api/types';
import {nodeKey, parseKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {COST_MEASURES, NODE_MEASURES, PARAMETER_MEASURES, rowAt} from '../../statistics';
import type {NodeMeasure, Row} from '../../statistics';
import {differenceMeasures, differenceState, isDifference} from '../comparison/graph';
import {stepMeasures} from '../comparison/steps';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {colourScale} from '../../graph/colours';
import type {ColourScale} from '../../graph/colours';
import {openableCalls} from '../../graph/facts';
import {loopsOf, nodesOf, resolved} from '../../graph/folds';
import type {Loop} from '../../graph/folds';
import {stateOf} from '../../graph/nodeState';
import {parameterSeries, together} from '../../graph/parameters';
import type {NodeState} from '../../graph/nodeState';

/** A layout and the inside of the graph that it places. */
export interface Scene {
  graph: ModuleGraph;
  inside: number | null;
  layout: Layout;
  /** Tells one inside from another, across revisions of a graph. */
  key: string;
}

/** As it was fetched, whichever of its repeated calls are on show. */
const fetched: Signal<Scene | null> = signal(null);

/** What is drawn; each box that stands for repeated calls shows one of them. */
export const scene: ReadonlySignal<Scene | null> = computed(() => {
  const now = fetched.value;
  return now && {...now, layout: resolved(now.graph, now.layout, choices.chosenCalls.value)};
});

/** The loops of what is drawn. */
export const loops: ReadonlySignal<Loop[]> = computed(() => {
  const now = fetched.value;
  return now === null ? [] : loopsOf(now.graph, now.layout, choices.chosenCalls.value);
});
export const layoutProblem: Signal<string | null> = signal(null);

const KEPT = 200;
const kept = new Map<string, Layout>();
const wantLayout = keepCurrent<Layout>((cause) => {
  layoutProblem.value = `The drawing could not be fetched: ${messageOf(cause)} Trying again.`;
});

/** Fetches the layout of whatever is open, once. */
export function startScene(): void {
  effect(followLayout);
}

function followLayout(): void {
  const graph = shown.graph.value;
  const inside = shown.inside.value;
  const model = shown.model.value;
  const epoch = shown.data.value?.epoch;
  if (graph === null || model === null || graph.calls.length === 0) return showNothing();
  const isSingle = choices.areCallsSingle.value;
  const stacked = stackedIn(graph, inside);
  const key = JSON.stringify([model.name.run, model.name.model, epoch, graph.graph, inside, isSingle, stacked]);
  const name = `${key}${graph.revision}`;
  const known = kept.get(name);
  const show = (layout: Layout): void => {
    if (!isOf(graph, layout)) return;
    keep(name, layout);
    showScene({graph, inside, layout, key});
  };
  wantLayout(known ? null : {key, version: graph, fetch: (abort) => model.layout({graph: graph.graph, inside, isSingle, stacked}, abort), show});
  if (known) show(known);
}

/** The nodes of an inside with which a stack begins that is to be drawn. */
function stackedIn({nodes}: ModuleGraph, inside: number | null): number[] {
  const found = choices.stacked.value.map((key) => nodeIndex.value.get(key));
  return found.filter((node) => node !== undefined && nodes[node]?.inside === inside) as number[];
}

function showNothing(): void {
  wantLayout(null);
  layoutProblem.value = null;
  fetched.value = null;
}

/** Shows a scene; what is on show already is left as it is, so that nothing is drawn again. */
function showScene(next: Scene): void {
  const now = fetched.peek();
  layoutProblem.value = null;
  if (now?.graph !== next.graph || now.layout !== next.layout || now.key !== next.key) fetched.value = next;
}

/** False for the layout of a newer revision, which the server has and of which the graph is still to come. */
function isOf({nodes, edges}: ModuleGraph, layout: Layout): boolean {
  const areNodes = layout.nodes.every((placed) => nodesOf(placed).every((node) => node < nodes.length));
  return areNodes && layout.edges.every(({edge, all = []}) => edge < edges.length && all.every((one) => one < edges.length));
}

function keep(name: string, layout: Layout): void {
  kept.set(name, layout);
  const oldest = kept.keys().next().value;
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest);
}

/** Key → index in `graph.nodes` of every node. */
export const nodeIndex: ReadonlySignal<Map<NodeKey, number>> = computed(() => {
  const graph = shown.graph.value;
  return new Map((graph?.nodes ?? []).map((_, i) => [nodeKey(graph as ModuleGraph, i), i]));
});

export const openable: ReadonlySignal<Set<number>> = computed(() =>
  shown.graph.value ? openableCalls(shown.graph.value) : new Set<number>(),
);

export const pinColours: ReadonlySignal<Map<NodeKey, number>> = computed(
  () => new Map(choices.pins.value.map(({key, colour}) => [key, colour])),
);

/** The measure that colours the nodes; null when their class does. */
export const nodeMeasure: ReadonlySignal<NodeMeasure | null> = computed(
  () => [...NODE_MEASURES, ...PARAMETER_MEASURES, ...COST_MEASURES, ...differenceMeasures.value, ...stepMeasures.value].find(({name}) => name === choices.colourBy.value) ?? null,
);

/** `module#call` → the series of that call, but for its parameters. */
const seriesOfCalls: ReadonlySignal<Map<NodeKey, SeriesInfo[]>> = computed(() =>
  group((shown.data.value?.series ?? []).filter(({call}) => call !== null), ({module, call}) => `${module}#${call}`),
);

const rowOfSeries: ReadonlySignal<Map<number, number>> = computed(
  () => new Map(Array.from(shown.statistics.value?.series ?? [], (series, row) => [series, row])),
);

/** The statistics of a series at the step on show; null when it has none there. */
export function statisticsOf(series: number): Row | null {
  const row = rowOfSeries.value.get(series);
  const statistics = shown.statistics.value?.statistics;
  if (row === undefined || !statistics || statistics.length < (row + 1) * STATISTICS.length) return null;
  return rowAt(statistics, row);
}

/**
 * The state of each node of the scene whose tensor was recorded, and of the calls that a node stands for: of a call's first output
 * that has data, or of the tensor itself.
 */
export const nodeStates: ReadonlySignal<Map<number, NodeState>> = computed(() => {
  const measure = nodeMeasure.value;
  const now = scene.value;
  const found = new Map<number, NodeState>();
  if (!measure || !now) return found;
  for (const node of now.layout.nodes.flatMap(nodesOf)) {
    if (PARAMETER_MEASURES.includes(measure)) {
      const state = stateOfParameters(now.graph, node, measure);
      if (state) found.set(node, state);
      continue;
    }
    const recorded = recordedOf(now.graph, node, measure);
    const state = recorded && (isDifference(measure) ? differenceState(recorded.series, recorded.row, measure) : stateOf(recorded.row, measure));
    if (state) found.set(node, state);
  }
  return found;
});

/** The measures of parameters that the model has been recorded with. */
export const parameterMeasures: ReadonlySignal<readonly NodeMeasure[]> = computed(() => {
  const kinds = new Set((shown.data.value?.series ?? []).flatMap(({role, kind}) => (role === 'param' ? [kind] : [])));
  return PARAMETER_MEASURES.filter(({kind}) => kinds.has(kind));
});

/** What a call took, if the model has been recorded with it. */
export const costMeasures: ReadonlySignal<readonly NodeMeasure[]> = computed(() =>
  (shown.data.value?.series ?? []).some(({kind}) => kind === 'time') ? COST_MEASURES : [],
);

const seriesOfParameters: ReadonlySignal<Map<string, number[]>> = computed(() => {
  const measure = nodeMeasure.value;
  return measure === null ? new Map<string, number[]>() : parameterSeries(shown.data.value?.series ?? [], measure.kind);
});

/** Of the parameters of a call's module, and of all that is in it. What has no parameters has no elements. */
function stateOfParameters({nodes, calls, modules}: ModuleGraph, node: number, measure: NodeMeasure): NodeState | null {
  const module = modules[calls[nodes[node]?.call ?? -1]?.module ?? -1];
  if (module === undefined || module.total_params === 0) return {kind: 'empty'};
  const row = together((seriesOfParameters.value.get(module.name) ?? []).flatMap((series) => statisticsOf(series) ?? []));
  return row && stateOf(row, measure);
}

function recordedOf(graph: ModuleGraph, node: number, measure: NodeMeasure): {series: SeriesInfo; row: Row} | null {
  const parsed = parseKey(nodeKey(graph, node));
  const {kind} = graph.nodes[node] as Node;
  if (!parsed) return null;
  const role = kind === 'call' ? 'output' : kind;
  const series = seriesOfCalls.value.get(`${parsed.module}#${parsed.call}`) ?? [];
  for (const one of series) {
    const isOurs = one.role === role && one.kind === measure.kind && (parsed.path === '' || one.path === parsed.path);
    const row = isOurs ? statisticsOf(one.series) : null;
    if (row) return {series: one, row};
  }
  return null;
}

/** How many nodes of the scene are in each kind of state. */
export const stateCounts: ReadonlySignal<Record<NodeState['kind'] | 'missing', number>> = computed(() => {
  const counts = {value: 0, zero: 0, nonfinite: 0, empty: 0, missing: 0};
  for (const {node} of scene.value?.layout.nodes ?? []) counts[nodeStates.value.get(node)?.kind ?? 'missing'] += 1;
  return counts;
});

export const valueScale: ReadonlySignal<ColourScale | null> = computed(() => {
  const values = [...nodeStates.value.values()].flatMap((state) => (state.kind === 'value' ? [state.value] : []));
  return colourScale(values, nodeMeasure.value?.isSigned ?? false);
});
