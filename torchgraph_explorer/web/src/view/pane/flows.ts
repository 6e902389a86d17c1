/** What comes back along the edges of the graph at the step on show, and how wide they are drawn. */

import {computed} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {Edge} from '../../api/types';
import {edgeKey, flowOf, gradientsByName, seriesOfEdge, widthScale} from '../../graph/edges';
import type {Flow, WidthScale} from '../../graph/edges';
import type {NodeKey} from '../../graph/keys';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {scene, statisticsOf} from './scene';

const MISSING: Flow = {kind: 'missing'};

const byName = computed(() => gradientsByName(shown.data.value?.series ?? []));

/** For each edge of the graph that gradient flows along, what is known at this step. */
const flows: ReadonlySignal<Map<Edge, Flow>> = computed(() => {
  const graph = shown.graph.value;
  const found = new Map<Edge, Flow>();
  for (const edge of graph?.edges ?? []) {
    if (graph === null || !edge.gradient) continue;
    found.set(edge, flowOf(seriesOfEdge(graph, edge, byName.value).map(({series}) => statisticsOf(series))));
  }
  return found;
});

/** Is anything known of any edge of the graph? Not in a record of an earlier release, or without gradients of tensors. */
export const areFlowsKnown: ReadonlySignal<boolean> = computed(() => [...flows.value.values()].some(({kind}) => kind !== 'missing'));

/** The widths of all edges of the graph, so that those of two insides can be compared; null while none are drawn. */
export const edgeWidths: ReadonlySignal<WidthScale | null> = computed(() => {
  if (!choices.areWidthsShown.value) return null;
  return widthScale([...flows.value.values()].flatMap((flow) => (flow.kind === 'value' ? [flow.norm] : [])));
});

export function flowAt(edge: Edge): Flow {
  return flows.value.get(edge) ?? MISSING;
}

/** How an edge is drawn: its width in pixels, null for the usual one; and whether it lacks a number that others have. */
export interface EdgeLook {
  width: number | null;
  isMissing: boolean;
}

const USUAL: EdgeLook = {width: null, isMissing: false};

export function lookOf(edge: Edge | undefined): EdgeLook {
  const scale = edgeWidths.value;
  if (!edge?.gradient || !choices.areWidthsShown.value || !areFlowsKnown.value) return USUAL;
  const flow = flowAt(edge);
  if (flow.kind === 'missing') return {width: null, isMissing: true};
  return {width: flow.kind === 'value' && scale !== null ? scale.at(flow.norm) : null, isMissing: false};
}

/** By key, the edges of the scene. */
export const edgesOnShow: ReadonlySignal<Map<NodeKey, Edge>> = computed(() => {
  const now = scene.value;
  const found = new Map<NodeKey, Edge>();
  for (const {edge} of now?.layout.edges ?? []) {
    const one = now?.graph.edges[edge];
    if (now && one) found.set(edgeKey(now.graph, one), one);
  }
  return found;
});

/** How many edges of the scene that gradient flows along have no number. */
export const missingCount: ReadonlySignal<number> = computed(
  () => [...edgesOnShow.value.values()].filter((edge) => edge.gradient && flowAt(edge).kind === 'missing').length,
);
