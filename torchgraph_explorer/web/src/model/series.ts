/** The series of a node, grouped as its panel shows them. */

import type {ModuleGraph, SeriesInfo} from '../api/types';
import {edgeOf, gradientsByName, seriesOfEdge} from '../graph/edges';
import {parseKey} from '../graph/keys';
import type {NodeKey, ParsedKey} from '../graph/keys';

/** One tensor's series, value and gradient side by side. */
export interface TensorSeries {
  path: string;
  value: SeriesInfo | null;
  /** Per-sample norms (`grad_norm`) of an input, output or attached tensor; elements (`grad`) of a parameter. */
  gradient: SeriesInfo | null;
  /** What an optimizer did with a parameter: the gradient it took, its update and how large that was. */
  optimizer: SeriesInfo[];
}

/** The series of a node, as its panel shows them. */
export interface NodeSeries {
  input: TensorSeries[];
  output: TensorSeries[];
  params: TensorSeries[];
  attached: TensorSeries[];
  /** Of an edge: the gradients that come back along it. */
  edge: TensorSeries[];
}

/** Does a series belong to the node: all of a call's tensors, or a placeholder's or attached tensor's own. */
export function belongs(series: SeriesInfo, {module, call, kind, path}: ParsedKey): boolean {
  if (series.module !== module) return false;
  if (series.role === 'param') return kind === 'call';
  if (series.call !== call) return false;
  if (kind === 'attached') return series.role === 'attached' && series.path === path;
  if (series.role === 'attached' || series.role === 'edge') return false;
  return kind === 'call' || series.path === path;
}

/** Groups the series of one node by what the tensor is to it, in the order in which they came. */
export function groupSeries(series: Iterable<SeriesInfo>): NodeSeries {
  const groups: NodeSeries = {input: [], output: [], params: [], attached: [], edge: []};
  for (const one of series) {
    const group = groups[one.role === 'param' ? 'params' : one.role];
    let tensor = group.find(({path}) => path === one.path);
    if (!tensor) group.push((tensor = {path: one.path, value: null, gradient: null, optimizer: []}));
    if (one.kind === 'value') tensor.value = one;
    else if (one.kind === 'grad' || one.kind === 'grad_norm') tensor.gradient = one;
    else tensor.optimizer.push(one);
  }
  return groups;
}

/** Those of all `series` that belong to the node, or to the edge, whose series the graph names. */
export function seriesOfNode(series: readonly SeriesInfo[], key: NodeKey, graph: ModuleGraph | null = null): NodeSeries {
  const parsed = parseKey(key);
  const edge = graph === null || parsed !== null ? null : edgeOf(graph, key);
  if (graph === null || edge === null) return groupSeries(parsed ? series.filter((one) => belongs(one, parsed)) : []);
  const found = seriesOfEdge(graph, edge, gradientsByName(series));
  return {...groupSeries([]), edge: found.map((gradient) => ({path: gradient.path, value: null, gradient, optimizer: []}))};
}
