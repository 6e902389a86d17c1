/** Which histograms a ridge shows, and their outlines. */

import type {SeriesHistory} from '../api/types';
import {addTo, countIn, emptyRows} from '../histogram/rebin';
import {boundsOf, histogramOf} from '../history';
import type {RowGrid} from './grid';
import {elementsIn} from './heat';
import type {ChartOptions} from './options';

/** Histograms that are drawn at most; of more steps, neighbours are added up. */
const MOST = 28;

export interface Ridge {
  /** The first and the last frame that it is of. */
  frame: number;
  last: number;
  /** The share of each row, lowest first. */
  shares: Float64Array;
}

export interface RidgeLayout {
  width: number;
  height: number;
  /** All stand on one line. */
  isOverlay: boolean;
}

const known = new WeakMap<SeriesHistory, {name: string; found: {ridges: Ridge[]; peak: number}}>();

/** The outlines of a history on a grid, from the first steps to the last ones, and the largest share. */
export function ridgesOf(history: SeriesHistory, grid: RowGrid): {ridges: Ridge[]; peak: number} {
  const name = JSON.stringify([grid.rows, grid.scale.low, grid.scale.high, grid.scale.kind, history.frame.length]);
  const before = known.get(history);
  if (before?.name === name) return before.found;
  const ridges = workOut(history, grid);
  const peaks = ridges.map(({shares}) => shares.reduce((most, share, row) => (row === grid.zeroRow ? most : Math.max(most, share)), 0));
  const sorted = peaks.filter((peak) => peak > 0).sort((a, b) => a - b);
  const found = {ridges, peak: sorted[Math.ceil(0.95 * sorted.length) - 1] ?? 1};
  known.set(history, {name, found});
  return found;
}

function workOut(history: SeriesHistory, grid: RowGrid): Ridge[] {
  const entries = history.frame.length;
  const together = Math.max(1, Math.ceil(entries / MOST));
  const found: Ridge[] = [];
  for (let first = 0; first < entries; first += together) {
    const stop = Math.min(entries, first + together);
    const rows = emptyRows(grid);
    for (let entry = first; entry < stop; entry++) addTo(rows, histogramOf(history, entry), boundsOf(history, entry), grid);
    const all = elementsIn(rows);
    if (all === 0) continue;
    const shares = Float64Array.from({length: grid.rows}, (_, row) => countIn(rows, row, grid) / all);
    found.push({frame: history.frame[first]!, last: history.last[stop - 1]!, shares});
  }
  return found;
}

/** Of the height, what the highest outline takes in a ridge. */
const TALL = 0.38;

interface Placed {
  /** From 0, the first step and farthest away, to 1. */
  at: number;
  peak: number;
  counts: ChartOptions['counts'];
  layout: RidgeLayout;
}

/** The base line of an outline, in pixels from the top. */
function baseOf(at: number, {height, isOverlay}: RidgeLayout): number {
  return isOverlay ? height : height * (TALL + (1 - TALL) * at);
}

/** An outline as an SVG path. */
export function ridgePath({shares}: Ridge, {at, peak, counts, layout}: Placed): string {
  const base = baseOf(at, layout);
  const tall = layout.isOverlay ? layout.height - 2 : layout.height * TALL;
  const height = (share: number): number => {
    const part = counts === 'linear' ? share / peak : Math.log1p((share / peak) * 1000) / Math.log1p(1000);
    return Math.min(1, part) * tall;
  };
  const wide = layout.width / shares.length;
  let path = `M0 ${short(base)}`;
  shares.forEach((share, row) => (path += `L${short((row + 0.5) * wide)} ${short(base - height(share))}`));
  return `${path}L${layout.width} ${short(base)}`;
}

function short(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

/** The ridge whose base line is the first below a height; null where all stand on one line, or there is none. */
export function ridgeAt(ridges: readonly Ridge[], y: number, layout: RidgeLayout): Ridge | null {
  if (ridges.length === 0 || layout.isOverlay) return null;
  const last = Math.max(1, ridges.length - 1);
  return ridges.find((_, i) => baseOf(i / last, layout) >= y) ?? ridges.at(-1)!;
}
