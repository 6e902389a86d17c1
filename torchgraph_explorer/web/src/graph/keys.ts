/** Names of nodes that stay the same across graphs, runs and reloads. */

import type {Call, ModuleGraph, Node, SeriesInfo} from '../api/types';

/**
 * `layer1.conv1#0` is the first call of a module, `layer1#0/input[0]` a placeholder in its inside, `layer1#0@name` a
 * tensor attached there. The model itself has an empty name: `#0`.
 */
export type NodeKey = string;

export interface ParsedKey {
  module: string;
  call: number;
  kind: 'call' | 'placeholder' | 'attached';
  /** Of the tensor; empty for a call. */
  path: string;
}

const KEY = /^(.*?)#(\d+)(?:([/@])(.*))?$/s;

/** What a key says; null when it is none. */
export function parseKey(key: NodeKey): ParsedKey | null {
  const match = KEY.exec(key);
  if (!match) return null;
  const [, module = '', call = '0', mark, path = ''] = match;
  const kind = mark === '/' ? 'placeholder' : mark === '@' ? 'attached' : 'call';
  return {module, call: Number(call), kind, path};
}

export function callKey(graph: ModuleGraph, call: number): NodeKey {
  const {module, call: number} = graph.calls[call] as Call;
  return `${graph.modules[module]?.name ?? ''}#${number}`;
}

/** The key of `graph.nodes[node]`. */
export function nodeKey(graph: ModuleGraph, node: number): NodeKey {
  const {kind, call, inside, tensor} = graph.nodes[node] as Node;
  if (kind === 'call' && call !== null) return callKey(graph, call);
  const owner = inside === null ? '#0' : callKey(graph, inside);
  return `${owner}${kind === 'attached' ? '@' : '/'}${tensor?.path ?? ''}`;
}

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
}

/** Does a series belong to the node: all of a call's tensors, or a placeholder's or attached tensor's own. */
export function belongs(series: SeriesInfo, {module, call, kind, path}: ParsedKey): boolean {
  if (series.module !== module) return false;
  if (series.role === 'param') return kind === 'call';
  if (series.call !== call) return false;
  if (kind === 'attached') return series.role === 'attached' && series.path === path;
  if (series.role === 'attached') return false;
  return kind === 'call' || series.path === path;
}

/** Groups the series of one node by what the tensor is to it, in the order in which they came. */
export function groupSeries(series: Iterable<SeriesInfo>): NodeSeries {
  const groups: NodeSeries = {input: [], output: [], params: [], attached: []};
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
