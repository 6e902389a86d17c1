/** Everything a strip draws, worked out before anything is drawn. */

import type {Band, SeriesHistory} from '../api/types';
import {measureNamed} from '../statistics';
import {stripMode} from './options';
import type {ChartOptions, StripMode} from './options';
import {bandsOf, type BandPoint} from './bands';
import {entriesByColumn, type Columns} from './columns';
import {heatOf, type Heat} from './heat';
import {isLost, lacksHistograms, nonfiniteOf, rowOfEntry, whatIsLost} from '../history';
import {stripLayout, type StripLayout, type StripRoom} from './layout';
import {linePoints, linesOf, type LinePoint} from './lines';
import {positionsOf, type FramePositions} from './positions';
import {limitsIn, type Limits} from './limits';
import {isWhole, rowGrid, type RowGrid} from './grid';
import type {ValueScale} from './scale';
import type {TimeAxis} from './timeAxis';
import {bandScale, elementScale, measureScale} from './valueAxis';

/** What is drawn in the plot, by mode. */
export type Content =
  | {mode: 'heat'; heat: Heat}
  | {mode: 'bands'; bands: BandPoint[][]}
  | {mode: 'line'; lines: LinePoint[][]};

export interface Scene {
  history: SeriesHistory;
  options: ChartOptions;
  layout: StripLayout;
  axis: TimeAxis;
  positions: FramePositions;
  columns: Columns;
  /** The plot's value axis. */
  scale: ValueScale;
  /** The rows of the bars; on the plot's axis except beside a line. */
  grid: RowGrid;
  content: Content;
  /** What a rule allows, on the plot's axis; null where it is of another statistic. */
  band: Limits | null;
  /** Columns in which something was NaN or infinite. */
  nonfinite: number[];
  /** Columns in which all was, ascending. */
  lost: number[];
  /** Columns of steps at which the series was not recorded, ascending. */
  missing: number[];
}

export interface SceneInput {
  history: SeriesHistory;
  options: ChartOptions;
  axis: TimeAxis;
  width: number;
  band?: Band | null;
  /** The value axis of heat, where several strips share one; left out: that of the history. */
  scale?: ValueScale;
  /** Left out: a strip alone, with bars if there are histograms. */
  room?: StripRoom;
}

/** Works a strip out for a width in pixels. */
export function sceneOf({history, options, axis, width, band = null, scale, room}: SceneInput): Scene {
  const layout = stripLayout(width, options.bins, room ?? {hasBars: !lacksHistograms(history)});
  const positions = positionsOf(axis, {width: layout.plot.width, unit: history.unit});
  const {columns} = positions;
  const nonfinite = nonfiniteColumns(history, columns);
  const gaps = {lost: lostColumns(history, columns), missing: missingColumns(history, columns)};
  const limits = limitsIn(band, options);
  const shared = {history, options, band: limits, layout, axis, positions, columns, nonfinite, ...gaps};
  return {...shared, ...WORK_OUT[stripMode(options.mode)](shared, scale)};
}

type Shared = Pick<Scene, 'history' | 'options' | 'columns' | 'positions' | 'band'>;
type Worked = Pick<Scene, 'scale' | 'grid' | 'content'>;

const WORK_OUT: Record<StripMode, (shared: Shared, given?: ValueScale) => Worked> = {
  heat(shared, given) {
    const {history, options, columns} = shared;
    if (lacksHistograms(history)) return WORK_OUT.bands(shared, given);
    const scale = given ?? elementScale(history, options);
    const grid = rowGrid(scale, options.bins, isWhole(history));
    return {scale, grid, content: {mode: 'heat', heat: heatOf(history, columns, grid)}};
  },
  bands({history, options, columns}, given) {
    const bands = bandsOf(history, columns);
    const scale = given ?? bandScale(history, bands, options);
    return {scale, grid: rowGrid(scale, options.bins, isWhole(history)), content: {mode: 'bands', bands}};
  },
  line({history, options, band, positions: {middles, binOf}}) {
    const points = linePoints(history, measureNamed(options.statistic));
    const lines = linesOf(points.filter(({frame}) => Number.isFinite(middles[frame])), binOf);
    const grid = rowGrid(elementScale(history, options), options.bins, isWhole(history));
    return {scale: measureScale(history, options, band), grid, content: {mode: 'line', lines}};
  },
};

function nonfiniteColumns(history: SeriesHistory, {of}: Columns): number[] {
  const found = new Set<number>();
  history.frame.forEach((frame, entry) => {
    const column = of[frame] ?? -1;
    if (column >= 0 && nonfiniteOf(history, entry) > 0) found.add(column);
  });
  return [...found];
}

function lostColumns(history: SeriesHistory, columns: Columns): number[] {
  const groups = entriesByColumn(history, columns);
  return groups.filter(({entries}) => entries.every((entry) => isLost(history, entry))).map(({column}) => column);
}

function missingColumns(history: SeriesHistory, {left, of}: Columns): number[] {
  const until = history.until ?? (history.last.at(-1) ?? -1) + 1;
  const isMissing = new Uint8Array(left.length);
  for (let frame = 0; frame < Math.min(until, of.length); frame++) if (of[frame]! >= 0) isMissing[of[frame]!] = 1;
  history.frame.forEach((frame) => of[frame]! >= 0 && (isMissing[of[frame]!] = 0));
  return Array.from(isMissing.keys()).filter((column) => isMissing[column] === 1);
}

/** Why a plot stays empty, as a short text; null when it does not. */
export function emptiness({history, content}: Scene): string | null {
  if (history.frame.length === 0) return 'nothing recorded';
  const isEmpty = content.mode === 'heat' ? history.counts.length === 0 : piecesOf(content).length === 0;
  return isEmpty ? withoutValues(history) : null;
}

function piecesOf(content: Exclude<Content, {mode: 'heat'}>): readonly unknown[] {
  return content.mode === 'line' ? content.lines : content.bands;
}

function withoutValues(history: SeriesHistory): string {
  const entries = Array.from(history.frame.keys());
  const lost = entries.filter((entry) => isLost(history, entry));
  if (lost.length === 0) return entries.every((entry) => rowOfEntry(history, entry).count === 0) ? 'no elements' : 'no finite values';
  const kinds = new Set(lost.map((entry) => whatIsLost(rowOfEntry(history, entry))));
  return kinds.size === 1 ? `all ${[...kinds][0]}` : 'all NaN or infinite';
}
