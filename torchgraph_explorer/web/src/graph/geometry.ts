/** Where things stand in the graph pane. Pixels, y downwards. */

import type {PlacedNode} from '../api/types';

export interface Box {
  width: number;
  height: number;
}

/** Screen = `k` × drawing + (`x`, `y`). */
export interface View {
  k: number;
  x: number;
  y: number;
}

export type Direction = 'left' | 'right' | 'up' | 'down';

/** The SVG path of a cubic spline: a start point, then three points per piece. Fewer than four points make none. */
export function splinePath(points: readonly (readonly [number, number])[]): string {
  const [start, ...rest] = points;
  if (!start || rest.length < 3) return '';
  const pieces = Array.from({length: Math.floor(rest.length / 3)}, (_, i) => rest.slice(3 * i, 3 * i + 3));
  return `M${at(start)}${pieces.map((piece) => `C${piece.map(at).join(' ')}`).join('')}`;
}

/** A spline that ends earlier, by so many pixels, as far as its last piece is longer than that. */
export function shortened(points: readonly (readonly [number, number])[], by: number): readonly (readonly [number, number])[] {
  const [before, control, end] = points.slice(-3);
  const start = points.at(-4);
  if (!start || !before || !control || !end) return points;
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]];
  const [tx, ty] = control[0] === end[0] && control[1] === end[1] ? [dx, dy] : [end[0] - control[0], end[1] - control[1]];
  const length = Math.hypot(tx, ty);
  if (length === 0 || Math.hypot(dx, dy) <= by) return points;
  const back = ([x, y]: readonly [number, number]): readonly [number, number] => [x - (by * tx) / length, y - (by * ty) / length];
  return [...points.slice(0, -2), back(control), back(end)];
}

function at([x, y]: readonly [number, number]): string {
  return `${round(x)},${round(y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A rectangle of the drawing. */
export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const SPARE = 0.6;
const WASTE = 3;

/** The part of the drawing that a view shows. */
export function areaOf(pane: Box, {k, x, y}: View): Area {
  return {left: -x / k, top: -y / k, right: (pane.width - x) / k, bottom: (pane.height - y) / k};
}

/**
 * The part of the drawing to keep in the page: what is seen and something around it. `kept` itself while that still holds all
 * that is seen and is not far too large, so that it changes seldom.
 */
export function areaToKeep(seen: Area, kept: Area | null): Area {
  const [width, height] = [seen.right - seen.left, seen.bottom - seen.top];
  if (kept && holds(kept, seen) && kept.right - kept.left < WASTE * width * (1 + 2 * SPARE)) return kept;
  const [across, down] = [SPARE * width, SPARE * height];
  return {left: seen.left - across, top: seen.top - down, right: seen.right + across, bottom: seen.bottom + down};
}

function holds(outer: Area, inner: Area): boolean {
  const isAcross = outer.left <= inner.left && outer.right >= inner.right;
  return isAcross && outer.top <= inner.top && outer.bottom >= inner.bottom;
}

/** Do two areas have something in common? */
export function meet(one: Area, other: Area): boolean {
  const isAcross = one.left <= other.right && other.left <= one.right;
  return isAcross && one.top <= other.bottom && other.top <= one.bottom;
}

export function nodeArea({x, y, width, height}: PlacedNode): Area {
  return {left: x - width / 2, top: y - height / 2, right: x + width / 2, bottom: y + height / 2};
}

/** An area that holds the whole spline: the curve stays between its points. */
export function splineArea(points: readonly (readonly [number, number])[]): Area {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  return {left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys)};
}

/** The nearest node in a direction; null without one. Nodes straight ahead are preferred to nodes at the side. */
export function neighbour(nodes: readonly PlacedNode[], from: PlacedNode, direction: Direction): PlacedNode | null {
  const found = nodes
    .filter((one) => one.node !== from.node)
    .map((one) => ({one, ...offset(from, one, direction)}))
    .filter(({ahead}) => ahead > 1)
    .sort((a, b) => a.ahead + 3 * a.aside - (b.ahead + 3 * b.aside));
  return found[0]?.one ?? null;
}

function offset(from: PlacedNode, to: PlacedNode, direction: Direction): {ahead: number; aside: number} {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const isAcross = direction === 'left' || direction === 'right';
  const sign = direction === 'left' || direction === 'up' ? -1 : 1;
  return {ahead: sign * (isAcross ? dx : dy), aside: Math.abs(isAcross ? dy : dx)};
}

/** `text` cut in its middle to what fits into `width`, at about `perLetter` pixels a letter: names differ at their ends. */
export function clip(text: string, width: number, perLetter: number): string {
  const fits = Math.floor(width / perLetter);
  if (text.length <= fits) return text;
  const tail = Math.floor((fits - 1) / 2);
  return fits < 2 ? '' : `${text.slice(0, fits - 1 - tail)}…${tail === 0 ? '' : text.slice(-tail)}`;
}

/** Of badges on the upper edge: they end above the name, also where that is written larger. */
export const BADGE_TOP = -11;
