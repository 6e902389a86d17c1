/** The dependency graph of named tensors: layers from left to right, neighbours and paths. Pure. */

import type {NamedKind, TensorGraph} from '../api/tensors';
import type {Zoom} from './choice';
import type {Box} from './grid';

/** Which nodes a node is computed from, and which are computed from it; numbers in `TensorGraph.nodes`. */
export interface Links {
  before: readonly ReadonlySet<number>[];
  after: readonly ReadonlySet<number>[];
}

export interface Place {
  x: number;
  y: number;
}

export interface Drawing {
  places: Place[];
  width: number;
  height: number;
}

export const BOX = {width: 150, height: 24};
const STEP = {x: 186, y: 32};
const MARGIN = 12;

/** The links between different nodes. */
export function linksOf({nodes, edges}: TensorGraph): Links {
  const owner = new Map(nodes.flatMap(({tensors}, node) => tensors.map((tensor) => [tensor, node] as const)));
  const [before, after] = [nodes.map(() => new Set<number>()), nodes.map(() => new Set<number>())];
  for (const [source, target] of edges) {
    const [from, to] = [owner.get(source), owner.get(target)];
    if (from === undefined || to === undefined || from === to) continue;
    after[from]?.add(to);
    before[to]?.add(from);
  }
  return {before, after};
}

/** The column of each node: after everything that it is computed from; parameters just before what uses them; losses last. */
export function layersOf(kinds: readonly NamedKind[], {before, after}: Links): number[] {
  const layers = longestPaths(before, after);
  const last = Math.max(0, ...layers);
  return layers.map((layer, node) => {
    const followers = [...(after[node] as Set<number>)].map((one) => layers[one] as number).filter((one) => one > layer);
    const isGiven = (before[node] as Set<number>).size === 0;
    if (kinds[node] === 'loss' && !isGiven) return Math.max(layer, followers.length === 0 ? last : layer);
    return isGiven && kinds[node] !== 'input' && followers.length > 0 ? Math.min(...followers) - 1 : layer;
  });
}

/** Steps from where nothing leads in. A circle, which only links made by hand can close, is cut where it is entered. */
function longestPaths(before: Links['before'], after: Links['after']): number[] {
  const layers = before.map(() => 0);
  const waiting = before.map((all) => all.size);
  const isDone = before.map(() => false);
  const ready = [...before.keys()].filter((node) => waiting[node] === 0);
  let rest = 0;
  for (let count = 0; count < before.length; count++) {
    let node = ready.shift();
    if (node === undefined) {
      while (isDone[rest]) rest += 1;
      node = rest;
    }
    isDone[node] = true;
    for (const next of after[node] as Set<number>) {
      if (isDone[next]) continue;
      layers[next] = Math.max(layers[next] as number, (layers[node] as number) + 1);
      waiting[next] = (waiting[next] as number) - 1;
      if (waiting[next] === 0) ready.push(next);
    }
  }
  return layers;
}

/** How large columns and rows are drawn, and whether names can be read at that size. */
export interface Scale {
  x: number;
  y: number;
  isLegible: boolean;
}

const LEGIBLE = 0.6;

/**
 * At a size at which names can be read, boxes keep their form. A whole graph that is too wide or too high for that is pressed
 * together along that direction alone: several hundred layers are then bars beside each other.
 */
export function scaleOf(zoom: Zoom, {width, height}: Drawing, room: Box): Scale {
  if (zoom !== 'fit') return {x: zoom, y: zoom, isLegible: zoom >= LEGIBLE};
  const [x, y] = [Math.min(1, room.width / width), Math.min(1, room.height / height)];
  const both = Math.min(x, y);
  return both >= LEGIBLE ? {x: both, y: both, isLegible: true} : {x, y, isLegible: false};
}

const SWEEPS = 4;

/** Where the boxes stand, in pixels: columns from left to right, neighbours close to each other. */
export function drawingOf(graph: TensorGraph, links: Links): Drawing {
  const layers = layersOf(graph.nodes.map(({kind}) => kind), links);
  const columns: number[][] = [];
  layers.forEach((layer, node) => (columns[layer] = [...(columns[layer] ?? []), node]));
  const filled = columns.filter((column) => column !== undefined);
  const rows = ordered(filled, links);
  const most = Math.max(1, ...filled.map(({length}) => length));
  const places: Place[] = layers.map(() => ({x: 0, y: 0}));
  filled.forEach((column, x) => {
    const top = ((most - column.length) * STEP.y) / 2;
    for (const node of column) places[node] = {x: MARGIN + x * STEP.x, y: MARGIN + top + (rows[node] as number) * STEP.y};
  });
  return {places, width: 2 * MARGIN + (filled.length - 1) * STEP.x + BOX.width, height: 2 * MARGIN + (most - 1) * STEP.y + BOX.height};
}

/** The row of each node in its column, by the mean of its neighbours' rows. */
function ordered(columns: number[][], {before, after}: Links): number[] {
  const rows: number[] = [];
  const number = (column: number[]): void => column.forEach((node, row) => (rows[node] = row - column.length / 2));
  columns.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const [sides, order] = sweep % 2 === 0 ? [before, columns] : [after, [...columns].reverse()];
    for (const column of order) {
      const wish = new Map(column.map((node) => [node, meanRow(sides[node] as Set<number>, rows) ?? (rows[node] as number)]));
      column.sort((a, b) => (wish.get(a) as number) - (wish.get(b) as number));
      number(column);
    }
  }
  for (const column of columns) column.forEach((node, row) => (rows[node] = row));
  return rows;
}

function meanRow(nodes: ReadonlySet<number>, rows: readonly number[]): number | null {
  if (nodes.size === 0) return null;
  return [...nodes].reduce((sum, node) => sum + (rows[node] as number), 0) / nodes.size;
}

/** All nodes on a path from one node to another, both included; empty without a path. */
export function between({before, after}: Links, from: number, to: number): Set<number> {
  const forth = reached(after, from);
  const back = reached(before, to);
  return new Set([...forth].filter((node) => back.has(node)));
}

function reached(next: readonly ReadonlySet<number>[], from: number): Set<number> {
  const found = new Set([from]);
  for (const node of found) for (const one of next[node] ?? []) found.add(one);
  return found;
}

/** A line between two nodes. */
export interface Link {
  from: number;
  to: number;
  /** One of the tensors that is looked at has it; else only others of its node. */
  isOwn: boolean;
  gradient: boolean;
}

/** The lines to and from a node. `tensor` is the one of it that is looked at; null for all. */
export function linksAt({nodes, edges}: TensorGraph, node: number, tensor: number | null): Link[] {
  const owner = new Map(nodes.flatMap(({tensors}, number) => tensors.map((one) => [one, number] as const)));
  return merged(
    edges.flatMap(([source, target, gradient]) => {
      const [from, to] = [owner.get(source), owner.get(target)];
      if (from === undefined || to === undefined || from === to || (from !== node && to !== node)) return [];
      return [{from, to, isOwn: tensor === null || source === tensor || target === tensor, gradient: gradient === 1}];
    }),
  );
}

/** The lines between some of the nodes. */
export function linksAmong({nodes, edges}: TensorGraph, among: ReadonlySet<number> | null): Link[] {
  const owner = new Map(nodes.flatMap(({tensors}, number) => tensors.map((one) => [one, number] as const)));
  return merged(
    edges.flatMap(([source, target, gradient]) => {
      const [from, to] = [owner.get(source), owner.get(target)];
      if (from === undefined || to === undefined || from === to) return [];
      return among === null || (among.has(from) && among.has(to)) ? [{from, to, isOwn: true, gradient: gradient === 1}] : [];
    }),
  );
}

/** One line for each pair. */
function merged(links: readonly Link[]): Link[] {
  const found = new Map<string, Link>();
  for (const link of links) {
    const key = `${link.from} ${link.to}`;
    const known = found.get(key);
    found.set(key, known === undefined ? link : {...known, isOwn: known.isOwn || link.isOwn, gradient: known.gradient || link.gradient});
  }
  return [...found.values()];
}

/** From the right side of a box to the left side of another one. */
export function curve(from: Place, to: Place): string {
  const [x, y] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [endX, endY] = [to.x, to.y + BOX.height / 2];
  const bend = Math.max(24, Math.abs(endX - x) / 2);
  return `M${x} ${y}C${x + bend} ${y} ${endX - bend} ${endY} ${endX} ${endY}`;
}
