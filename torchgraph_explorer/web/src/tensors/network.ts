/** The modules of a graph as a table: their parameters, and what share of all they are. Pure. */

import type {Module, ModuleGraph} from '../api/types';

export interface NetworkRow {
  /** Index in `graph.modules`. */
  number: number;
  module: Module;
  /** How many modules it is inside of. */
  depth: number;
  hasInside: boolean;
  /** Of the model's parameters. */
  share: number;
  /** How often it is called. */
  calls: number;
}

export const NETWORK_ORDERS = ['tree', 'total', 'own', 'trainable', 'calls'] as const;
export type NetworkOrder = (typeof NETWORK_ORDERS)[number];

/** Every module below each other. */
export function networkRows(graph: ModuleGraph): NetworkRow[] {
  const names = new Set(graph.modules.map(({name}) => name));
  const total = graph.modules.find(({name}) => name === '')?.total_params ?? Math.max(0, ...graph.modules.map((one) => one.total_params));
  const calls = new Map<number, number>();
  for (const {module} of graph.calls) calls.set(module, (calls.get(module) ?? 0) + 1);
  const owners = new Set(graph.modules.flatMap(({name}) => (name === '' ? [] : [ownerOf(name, names)])));
  return graph.modules.map((module, number) => ({
    number,
    module,
    depth: depthOf(module.name, names),
    hasInside: owners.has(module.name),
    share: total > 0 ? module.total_params / total : 0,
    calls: calls.get(number) ?? 0,
  }));
}

/** The module that a module is in: the longest name before it. */
function ownerOf(name: string, names: ReadonlySet<string>): string {
  for (let dot = name.lastIndexOf('.'); dot >= 0; dot = name.lastIndexOf('.', dot - 1)) {
    if (names.has(name.slice(0, dot))) return name.slice(0, dot);
  }
  return '';
}

function depthOf(name: string, names: ReadonlySet<string>): number {
  let depth = 0;
  for (let at = name; at !== ''; at = ownerOf(at, names)) depth += 1;
  return depth;
}

/** As a tree, or with the largest first. Of a tree, modules inside those that are folded are left out. */
export function arranged(rows: readonly NetworkRow[], {order, words, folded}: {order: NetworkOrder; words: string; folded: ReadonlySet<string>}): NetworkRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(({module}) => wanted.every((word) => `${module.name} ${module.class_name}`.toLowerCase().includes(word)));
  if (order !== 'tree') return [...found].sort((a, b) => numberOf(b, order) - numberOf(a, order));
  const tree = treeOrder(found, new Set(rows.map(({module}) => module.name)));
  return wanted.length > 0 ? tree : tree.filter(({module: {name}}) => ![...folded].some((one) => name !== one && (one === '' ? name !== '' : name.startsWith(`${one}.`))));
}

function numberOf({module, calls}: NetworkRow, order: NetworkOrder): number {
  return {total: module.total_params, own: module.own_params, trainable: module.trainable_params, calls, tree: 0}[order];
}

/** Each module before those inside it, in the order in which the graph has them. */
function treeOrder(rows: readonly NetworkRow[], names: ReadonlySet<string>): NetworkRow[] {
  const inside = new Map<string, NetworkRow[]>();
  const roots: NetworkRow[] = [];
  const shown = new Set(rows.map(({module}) => module.name));
  for (const row of rows) {
    const owner = row.module.name === '' ? null : ownerOf(row.module.name, names);
    if (owner === null || !shown.has(owner)) roots.push(row);
    else inside.set(owner, [...(inside.get(owner) ?? []), row]);
  }
  const walk = (row: NetworkRow): NetworkRow[] => [row, ...(inside.get(row.module.name) ?? []).flatMap(walk)];
  return roots.flatMap(walk);
}
