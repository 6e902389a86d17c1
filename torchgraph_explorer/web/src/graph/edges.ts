/** The gradient that comes back along an edge: its series, its size at a step, and how wide that is drawn. */

import type {Edge, ModuleGraph, SeriesInfo} from '../api/types';
import type {Row} from '../statistics';
import {formatNumber} from '../numberText';
import {nodeText} from './facts';
import {nodeKey} from './keys';
import type {NodeKey} from './keys';

const ARROW = ' → ';

/** The key of an edge, by those of its ends: it stays the same across graphs, runs and reloads. */
export function edgeKey(graph: ModuleGraph, {source, target}: Edge): NodeKey {
  return `${nodeKey(graph, source)}${ARROW}${nodeKey(graph, target)}`;
}

/** The keys of the ends of an edge; null for the key of a node. */
export function endsOf(key: NodeKey): [source: NodeKey, target: NodeKey] | null {
  const [source, target, ...more] = key.split(ARROW);
  return source !== undefined && target !== undefined && more.length === 0 ? [source, target] : null;
}

/** The edge with that key; null if there is none in the graph. */
export function edgeOf(graph: ModuleGraph, key: NodeKey): Edge | null {
  if (endsOf(key) === null) return null;
  return graph.edges.find((edge) => edgeKey(graph, edge) === key) ?? null;
}

/** An edge as one reads it: `conv1 → output`. */
export function edgeName(graph: ModuleGraph | null, ends: readonly [NodeKey, NodeKey]): string {
  return ends.map((key) => placeName(graph, key)).join(ARROW);
}

function placeName(graph: ModuleGraph | null, key: NodeKey): string {
  const at = graph?.nodes.findIndex((_, i) => nodeKey(graph, i) === key) ?? -1;
  const node = graph?.nodes[at];
  return graph && node ? nodeText(graph, node).label : key;
}

/** What tells one series of gradients of tensors from another. */
function nameOf(module: string, call: number | null, role: string, path: string): string {
  return JSON.stringify([module, call, role, path]);
}

/** By `nameOf`: the series of gradients of tensors. */
export function gradientsByName(series: readonly SeriesInfo[]): Map<string, SeriesInfo> {
  const gradients = series.filter(({kind}) => kind === 'grad_norm');
  return new Map(gradients.map((one) => [nameOf(one.module, one.call, one.role, one.path), one]));
}

/** The series of an edge; none if one of them is not recorded, since only together they are its gradient. */
export function seriesOfEdge(graph: ModuleGraph, edge: Edge, byName: ReadonlyMap<string, SeriesInfo>): SeriesInfo[] {
  const names = edge.series ?? [];
  const found = names.flatMap(({call, role, path}) => {
    const at = graph.calls[call];
    const name = at && nameOf(graph.modules[at.module]?.name ?? '', at.call, role, path);
    return (name !== undefined && byName.get(name)) || [];
  });
  return found.length === names.length ? found : [];
}

/** What comes back along an edge at a step. */
export type Flow = {kind: 'value'; norm: number} | {kind: 'zero' | 'nonfinite' | 'missing'};

/** The gradient's norm, of all tensors that come along the edge and all samples, from the rows of its series. */
export function flowOf(rows: readonly (Row | null)[]): Flow {
  if (rows.length === 0 || rows.some((row) => row === null)) return {kind: 'missing'};
  const known = rows as readonly Row[];
  if (known.some(({nan, positive_infinity: infinite}) => nan > 0 || infinite > 0)) return {kind: 'nonfinite'};
  const norm = Math.hypot(...known.map(({l2_norm}) => l2_norm));
  return Number.isFinite(norm) && norm > 0 ? {kind: 'value', norm} : {kind: norm === 0 ? 'zero' : 'missing'};
}

/** The norm in words. */
export function flowText(flow: Flow): string {
  if (flow.kind === 'value') return formatNumber(flow.norm);
  return {zero: '0', nonfinite: 'NaN or ∞', missing: 'not recorded'}[flow.kind];
}

export const NARROWEST = 1;
export const WIDEST = 8;
/** Where all gradients are about the same, so are the widths: the scale spans at least this factor. */
const LEAST_SPAN = 10;

export interface WidthScale {
  low: number;
  high: number;
  /** The width of a norm, in pixels. */
  at: (norm: number) => number;
}

/** A logarithmic scale for these norms, which are above 0; null without any. */
export function widthScale(norms: readonly number[]): WidthScale | null {
  if (norms.length === 0) return null;
  const [low, high] = norms.reduce(([least, most], norm) => [Math.min(least, norm), Math.max(most, norm)], [Infinity, 0]);
  const span = Math.log(Math.max(high / low, LEAST_SPAN));
  const at = (norm: number): number => WIDEST - (WIDEST - NARROWEST) * Math.min(1, Math.max(0, Math.log(high / norm) / span));
  return {low, high, at};
}
