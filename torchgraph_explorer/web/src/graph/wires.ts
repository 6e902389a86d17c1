/** The lines of a large drawing: what several of them share is drawn once. */

import type {PlacedEdge} from '../api/types';
import {meet, splineArea, splinePath, type Area} from './geometry';

type Point = readonly [number, number];

export interface Wires {
  /** The SVG path of all that lies between the ends. */
  shared: string;
  /** The SVG paths of the last pieces, which end in an arrow. */
  tips: string[];
}

/**
 * The pieces of the splines that meet `area`; all of them when it is null.
 *
 * In plain rows hundreds of lines run on top of each other beside the rows; one by one they take seconds to paint.
 */
export function wiresOf(edges: readonly PlacedEdge[], area: Area | null): Wires {
  const [curves, tips] = [new Set<string>(), new Set<string>()];
  const runs = new Map<number, [number, number][]>();
  for (const {points} of edges) {
    const pieces = piecesOf(points);
    pieces.forEach((piece, i) => {
      if (area !== null && !meet(splineArea(piece), area)) return;
      const isTip = i === pieces.length - 1;
      if (!isTip && isVertical(piece)) addRun(runs, piece);
      else (isTip ? tips : curves).add(splinePath(piece));
    });
  }
  return {shared: [...curves, ...[...runs].map(([x, spans]) => runPath(x, spans))].join(''), tips: [...tips]};
}

/** The cubic pieces of a spline, four points each. */
function piecesOf(points: readonly Point[]): Point[][] {
  return Array.from({length: Math.floor((points.length - 1) / 3)}, (_, i) => points.slice(3 * i, 3 * i + 4));
}

function isVertical(piece: readonly Point[]): boolean {
  return piece.every(([x]) => x === piece[0]![0]);
}

function addRun(runs: Map<number, [number, number][]>, piece: readonly Point[]): void {
  const [[x, from], [, to]] = [piece[0]!, piece.at(-1)!];
  const spans = runs.get(x) ?? [];
  runs.set(x, spans);
  spans.push([Math.min(from, to), Math.max(from, to)]);
}

/** Straight down wherever one of the spans is. */
function runPath(x: number, spans: readonly [number, number][]): string {
  const joined: [number, number][] = [];
  for (const [from, to] of [...spans].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined.map(([from, to]) => `M${x},${from}V${to}`).join('');
}
