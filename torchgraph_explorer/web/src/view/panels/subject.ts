/** What a panel is about: its title, and what the graph knows of its tensors. */

import type {ModuleGraph, SeriesInfo, TensorInfo} from '../../api/types';
import {edgeName, endsOf} from '../../graph/edges';
import {nameText} from '../../graph/facts';
import {tensorNameOf} from '../../graph/labels';
import {parseKey, type NodeKey, type ParsedKey} from '../../graph/keys';

export interface Subject {
  /** Qualified name; the model itself goes by its class. */
  title: string;
  /** `#2` for a module's second call; empty for its first. */
  call: string;
  /** The class, or what kind of tensor it is. */
  detail: string;
  /** Shape, dtype and whether gradient reaches it; null for a tensor that is not in this graph. */
  tensor: (series: SeriesInfo) => TensorInfo | null;
}

/** The subject of a node. A node that is not in the graph on show still has its name. */
export function subjectOf(key: NodeKey, graph: ModuleGraph | null): Subject {
  const parsed = parseKey(key);
  const ends = endsOf(key);
  if (ends !== null) return {title: edgeName(graph, ends), call: '', detail: 'gradient along the edge', tensor: () => null};
  if (parsed === null) return {title: key, call: '', detail: '', tensor: () => null};
  const module = graph?.modules.find(({name}) => name === parsed.module);
  const owner = module ? nameText(module) : parsed.module || 'model';
  const title = parsed.kind === 'call' ? owner : `${owner} › ${tensorNameOf(graph, parsed.module, parsed.path)}`;
  const detail = {call: module?.class_name ?? '', placeholder: 'tensor', attached: 'attached tensor'}[parsed.kind];
  const tensors = graph === null ? new Map<string, TensorInfo>() : tensorsOf(graph, parsed);
  const call = parsed.call === 0 ? '' : `#${parsed.call + 1}`;
  return {title, call, detail, tensor: ({role, path}) => tensors.get(`${role} ${path}`) ?? null};
}

function tensorsOf(graph: ModuleGraph, {module: name, call: number}: ParsedKey): Map<string, TensorInfo> {
  const index = graph.calls.findIndex(({module, call}) => call === number && graph.modules[module]?.name === name);
  const call = graph.calls[index];
  const module = graph.modules.find((one) => one.name === name);
  const attached = graph.nodes.filter(({kind, inside}) => kind === 'attached' && inside === index);
  return new Map([
    ...entries('input', call?.inputs ?? []),
    ...entries('output', call?.outputs ?? []),
    ...entries('param', module?.params ?? []),
    ...entries('attached', attached.flatMap(({tensor}) => tensor ?? [])),
  ]);
}

function entries(role: SeriesInfo['role'], tensors: readonly TensorInfo[]): [string, TensorInfo][] {
  return tensors.map((tensor) => [`${role} ${tensor.path}`, tensor]);
}
