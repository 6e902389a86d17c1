/** Where the labels of stubs stand: at a target the names of its sources, at a source how many targets it has. */

import {group} from 'd3-array';
import type {Layout, ModuleGraph, PlacedEdge, PlacedNode} from '../api/types';

/** Stubs that arrive at a node and share a label. */
export interface Arrival {
  /** The node that they arrive at. */
  target: number;
  /** Their sources, in the order of the graph: one, or those that have no label of their own. */
  sources: number[];
  /** Indices in `ModuleGraph.edges`. */
  edges: number[];
  /** Where the arrow begins, and where it ends at the node. */
  from: readonly [number, number];
  to: readonly [number, number];
}

/** Stubs that leave a node. */
export interface Departure {
  source: number;
  targets: number[];
  edges: number[];
  /** Where its text begins. */
  at: readonly [number, number];
}

export const STUB_HEIGHT = 15;
/** Room for a label on the left of a node; the layout keeps it free. */
export const STUB_LABEL_WIDTH = 92;
const ARROW = 16;
const GAP = 5;

/** One label per source, as far as there is room beside the target; the last one then stands for all others. */
export function arrivalsOf(graph: ModuleGraph, {nodes, edges}: Layout): Arrival[] {
  const byTarget = group(stubsIn(edges), (edge) => endOf(graph, edge, 'target'));
  return nodes.flatMap((placed) => {
    const rows = labelRows(byTarget.get(placed.node) ?? [], placed);
    return rows.map((some, i) => ({
      ...beside(placed, i - (rows.length - 1) / 2),
      target: placed.node,
      sources: some.map((edge) => endOf(graph, edge, 'source')),
      edges: some,
    }));
  });
}

export function departuresOf(graph: ModuleGraph, {nodes, edges}: Layout): Departure[] {
  const bySource = group(stubsIn(edges), (edge) => endOf(graph, edge, 'source'));
  return nodes.flatMap(({node, x, y, width}) => {
    const some = bySource.get(node);
    if (some === undefined) return [];
    return [{source: node, targets: some.map((edge) => endOf(graph, edge, 'target')), edges: some, at: [x + width / 2 + GAP, y] as const}];
  });
}

function stubsIn(edges: readonly PlacedEdge[]): number[] {
  return edges.filter(({is_stub: isStub}) => isStub).map(({edge}) => edge);
}

function endOf(graph: ModuleGraph, edge: number, end: 'source' | 'target'): number {
  return graph.edges[edge]?.[end] ?? -1;
}

/** The edges of each label. */
function labelRows(edges: readonly number[], {height}: PlacedNode): number[][] {
  const rows = Math.max(1, Math.floor((height + 2) / STUB_HEIGHT));
  const alone = edges.length <= rows ? edges : edges.slice(0, rows - 1);
  const others = edges.slice(alone.length);
  return [...alone.map((edge) => [edge]), ...(others.length > 0 ? [others] : [])];
}

/** The arrow of a label that stands so many rows below the middle of a node. */
function beside({x, y, width}: PlacedNode, row: number): Pick<Arrival, 'from' | 'to'> {
  const [left, height] = [x - width / 2, y + row * STUB_HEIGHT];
  return {from: [left - ARROW, height], to: [left - 1, height]};
}
