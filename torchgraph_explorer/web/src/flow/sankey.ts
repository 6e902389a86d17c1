/** Places the links of a chain as a Sankey diagram. Everything is there: what is not drawn by itself is in one grey link. */

export interface PairLinks {
  source: ArrayLike<number>;
  target: ArrayLike<number>;
  value: ArrayLike<number>;
  past: ArrayLike<number>;
  /** The sum of |C| over all links, drawn or not. */
  total: number;
}

export interface SankeyOptions {
  /** How many groups each tensor of the chain has. */
  groups: readonly number[];
  /** For each pair of neighbours; null where there are no links yet. */
  pairs: readonly (PairLinks | null)[];
  /** Draws at most so many links of a pair. */
  most: number;
  /** Whether a link is strong enough, given the strongest of its pair. */
  passes: (size: number, largest: number) => boolean;
  width: number;
  height: number;
}

export interface SankeyNode {
  column: number;
  /** A group of the column's tensor; null for the others together. */
  group: number | null;
  x: number;
  y: number;
  height: number;
}

export interface SankeyLink {
  pair: number;
  kind: 'link' | 'rest' | 'past';
  source: number | null;
  target: number | null;
  /** Signed for a link; else a sum of sizes. */
  value: number;
  /** Of all that flows between the two tensors, and past the second. */
  share: number;
  path: string;
  width: number;
}

export interface SankeyLayout {
  nodes: SankeyNode[];
  links: SankeyLink[];
}

export const NODE_WIDTH = 10;
const GAP = 3;
const MARGIN = 8;
/** The node of what is not drawn by itself, and that of what leads past the next tensor. */
const REST = -1;
const PAST = -2;

interface Flow {
  pair: number;
  kind: SankeyLink['kind'];
  source: number;
  target: number;
  value: number;
  share: number;
}

/** The layout. Within a pair, widths are shares of all that flows between its tensors and past the second. */
export function layoutSankey(options: SankeyOptions): SankeyLayout {
  const {groups, pairs, width, height} = options;
  const flows = pairs.flatMap((pair, i) => (pair === null ? [] : flowsOf(pair, i, options)));
  const columns = groups.map((_, column) => nodesOf(flows, column));
  const scale = Math.min(...columns.map((nodes) => scaleOf(nodes, height)));
  const step = groups.length > 1 ? (width - NODE_WIDTH) / (groups.length - 1) : 0;
  const places = columns.map((nodes, column) => stack(nodes, {x: column * step, scale, height, column}));
  const nodes = places.flatMap((place) => [...place.values()]);
  return {nodes: nodes.map(({id, ...node}) => ({...node, group: id < 0 ? null : id})), links: route(flows, places, scale)};
}

function flowsOf(pair: PairLinks, number: number, {most, passes}: SankeyOptions): Flow[] {
  const past = sumOf(pair.past);
  const whole = pair.total + past || 1;
  const largest = pair.value.length > 0 ? Math.abs(pair.value[0] as number) : 0;
  const flows: Flow[] = [];
  let shown = 0;
  for (let i = 0; i < Math.min(most, pair.value.length); i++) {
    const value = pair.value[i] as number;
    if (!passes(Math.abs(value), largest)) break; // they are in descending order
    shown += Math.abs(value);
    flows.push({
      pair: number,
      kind: 'link',
      source: pair.source[i] as number,
      target: pair.target[i] as number,
      value,
      share: Math.abs(value) / whole,
    });
  }
  const rest = Math.max(0, pair.total - shown);
  if (rest > 1e-6 * whole) flows.push({pair: number, kind: 'rest', source: REST, target: REST, value: rest, share: rest / whole});
  if (past > 1e-5 * whole) flows.push({pair: number, kind: 'past', source: PAST, target: PAST, value: past, share: past / whole});
  return flows;
}

function sumOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Number.isFinite(values[i]) ? Math.abs(values[i] as number) : 0;
  return sum;
}

interface Sized {
  id: number;
  size: number;
}

/** The nodes of a column in the order of their groups, the others together at the end. */
function nodesOf(flows: readonly Flow[], column: number): Sized[] {
  const into = new Map<number, number>();
  const out = new Map<number, number>();
  const add = (sums: Map<number, number>, id: number, share: number) => sums.set(id, (sums.get(id) ?? 0) + share);
  for (const {pair, source, target, share} of flows) {
    if (pair === column) add(out, source, share);
    if (pair === column - 1) add(into, target, share);
  }
  const ids = [...new Set([...into.keys(), ...out.keys()])];
  const sized = ids.map((id) => ({id, size: Math.max(into.get(id) ?? 0, out.get(id) ?? 0)}));
  return sized.sort((a, b) => (a.id < 0 || b.id < 0 ? b.id - a.id : a.id - b.id));
}

function scaleOf(nodes: readonly Sized[], height: number): number {
  const total = nodes.reduce((sum, {size}) => sum + size, 0);
  return total > 0 ? Math.max(1, height - 2 * MARGIN - gapOf(nodes, height) * (nodes.length - 1)) / total : Infinity;
}

/** Many nodes stand closer. */
function gapOf(nodes: readonly Sized[], height: number): number {
  return Math.min(GAP, (height * 0.3) / Math.max(1, nodes.length));
}

interface Stacked extends SankeyNode {
  id: number;
}

function stack(nodes: readonly Sized[], {x, scale, height, column}: {x: number; scale: number; height: number; column: number}): Map<number, Stacked> {
  const gap = gapOf(nodes, height);
  let y = MARGIN;
  return new Map(
    nodes.map(({id, size}) => {
      const node = {id, column, group: id, x, y, height: size * scale};
      y += node.height + gap;
      return [id, node];
    }),
  );
}

/** Links leave and enter their nodes in the order of the nodes at their other ends. */
function route(flows: readonly Flow[], places: readonly Map<number, Stacked>[], scale: number): SankeyLink[] {
  const from = ({pair, source}: Flow) => places[pair]!.get(source) as Stacked;
  const to = ({pair, target}: Flow) => places[pair + 1]!.get(target) as Stacked;
  const starts = offsets(flows, from, to, scale);
  const ends = offsets(flows, to, from, scale);
  return flows.map((flow) => {
    const width = flow.share * scale;
    const x0 = from(flow).x + NODE_WIDTH;
    const x1 = to(flow).x;
    const [y0, y1] = [starts.get(flow)! + width / 2, ends.get(flow)! + width / 2];
    const middle = (x0 + x1) / 2;
    const path = `M${x0},${y0.toFixed(2)}C${middle},${y0.toFixed(2)} ${middle},${y1.toFixed(2)} ${x1},${y1.toFixed(2)}`;
    const {pair, kind, value, share, source, target} = flow;
    return {pair, kind, value, share, width, path, source: source < 0 ? null : source, target: target < 0 ? null : target};
  });
}

function offsets(flows: readonly Flow[], own: (flow: Flow) => Stacked, other: (flow: Flow) => Stacked, scale: number): Map<Flow, number> {
  const used = new Map<Stacked, number>();
  const found = new Map<Flow, number>();
  for (const flow of [...flows].sort((a, b) => other(a).y - other(b).y)) {
    const node = own(flow);
    const at = used.get(node) ?? node.y;
    found.set(flow, at);
    used.set(node, at + flow.share * scale);
  }
  return found;
}
