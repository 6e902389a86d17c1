/** Histograms of one step of several runs on top of each other, as outlines. */

import {rowGrid, type RowGrid} from '../charts/grid';
import {axisExtent} from '../charts/extent';
import {elementsIn} from '../charts/heat';
import type {ChartOptions} from '../charts/options';
import {linearScale, symlogScale, type ValueScale} from '../charts/scale';
import {countIn, rebin} from '../histogram/rebin';
import type {Bounds, Histogram} from '../histogram/histogram';
import {trimmed} from '../histogram/trimmed';

export interface Spread {
  histogram: Histogram;
  bounds: Bounds;
}

export interface Outlines {
  grid: RowGrid;
  /** The share of each row of its elements, lowest row first, by histogram; null for one without finite elements. */
  shares: (Float64Array | null)[];
  /** What full height is. */
  peak: number;
}

/** The outlines of histograms on one axis. A spike of zeros may be cut off at the top. */
export function outlinesOf(spreads: readonly (Spread | null)[], options: ChartOptions, given: ValueScale | null = null): Outlines {
  const scale = given ?? scaleFor(spreads.filter((one) => one !== null), options);
  const grid = rowGrid(scale, options.bins);
  const shares = spreads.map((one) => (one === null || one.histogram.counts.length === 0 ? null : sharesOf(one, grid)));
  return {grid, shares, peak: peakOf(shares, grid)};
}

function sharesOf({histogram, bounds}: Spread, grid: RowGrid): Float64Array {
  const rows = rebin(histogram, bounds, grid);
  const all = elementsIn(rows);
  return Float64Array.from({length: grid.rows}, (_, row) => (all > 0 ? countIn(rows, row, grid) / all : 0));
}

/** The largest row but that of zero, which has a spike of its own in what follows a ReLU. */
function peakOf(shares: readonly (Float64Array | null)[], {zeroRow}: RowGrid): number {
  const all = shares.flatMap((one) => (one === null ? [] : Array.from(one, (share, row) => ({share, row}))));
  const [most, besides] = [Math.max(0, ...all.map(({share}) => share)), Math.max(0, ...all.map(({share, row}) => (row === zeroRow ? 0 : share)))];
  return (besides > 0 && most > SPIKE * besides ? SPIKE * besides : most) || 1;
}

/** A spike that is higher than this many times the rest is cut off. */
const SPIKE = 2;

/** The axis for these histograms at this step. */
function scaleFor(spreads: readonly Spread[], {range, reject, scale}: ChartOptions): ValueScale {
  const filled = spreads.filter(({histogram}) => histogram.counts.length > 0);
  const each = filled.map(({histogram, bounds}) => (range === 'full' ? bounds : trimmed(histogram, bounds, reject / 2)));
  const extent = each.length === 0 ? null : {low: Math.min(...each.map(({low}) => low)), high: Math.max(...each.map(({high}) => high))};
  const ends = axisExtent(extent);
  if (scale !== 'symlog') return linearScale(ends);
  const reach = Math.max(Math.abs(ends.low), Math.abs(ends.high));
  return symlogScale(ends, reach / 1000);
}

/** How high a share stands, from 0 to 1; a little more than 1 where it is cut off. */
export function heightOf(share: number, peak: number, counts: ChartOptions['counts']): number {
  const part = counts === 'linear' ? share / peak : Math.log1p((share / peak) * LOG_REACH) / Math.log1p(LOG_REACH);
  return Math.min(1, part);
}

const LOG_REACH = 1000;

/** The outline as an SVG path in a box of the given size, its base line at the bottom. */
export function outlinePath(shares: Float64Array, height: (share: number) => number, box: {width: number; height: number}): string {
  const wide = box.width / shares.length;
  let path = `M0 ${box.height}`;
  shares.forEach((share, row) => {
    const y = short((1 - height(share)) * box.height);
    path += `V${y}H${short((row + 1) * wide)}`;
  });
  return `${path}V${box.height}`;
}

function short(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
