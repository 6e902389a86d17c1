/** Names of nodes that stay the same across graphs, runs and reloads. */

import type {Call, ModuleGraph, Node} from '../api/types';
import {numbered} from './labels';

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

/** What a key says; null for a text that is not the key of a node, such as that of an edge (see edges.ts). */
export function parseKey(key: NodeKey): ParsedKey | null {
  const match = key.includes(' → ') ? null : KEY.exec(key);
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
  return `${owner}${kind === 'attached' ? '@' : '/'}${numbered(tensor?.path ?? '', twinNumber(graph, graph.nodes[node] as Node))}`;
}

const twinsOf = new WeakMap<ModuleGraph, Map<Node, number>>();

/** 1, or for a placeholder that has the path of earlier ones in its inside, such as `(not an argument)`, which of them it is. */
export function twinNumber(graph: ModuleGraph, node: Node): number {
  const known = twinsOf.get(graph) ?? twinNumbers(graph);
  twinsOf.set(graph, known);
  return known.get(node) ?? 1;
}

function twinNumbers({nodes}: ModuleGraph): Map<Node, number> {
  const counts = new Map<string, number>();
  const found = new Map<Node, number>();
  for (const node of nodes) {
    if (node.kind === 'call') continue;
    const name = JSON.stringify([node.inside, node.kind, node.tensor?.path]);
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    if (number > 1) found.set(node, number);
  }
  return found;
}
