/** How strips and curves are drawn. */

import type {Session} from '../api/types';
import type {TimeKind} from './timeAxis';

/** What a strip can show over time. */
export type StripMode = 'heat' | 'bands' | 'line';

export interface ChartOptions {
  /** `ridge` and `overlay` draw histograms of several steps: behind each other, or on top of each other. */
  mode: StripMode | 'ridge' | 'overlay';
  /** Drawn by `line`: a name of `MEASURES`. */
  statistic: string;
  range: 'robust' | 'full';
  /** `auto` leaves it to the data. */
  scale: 'auto' | 'linear' | 'symlog';
  counts: 'linear' | 'log';
  time: TimeKind;
  /** Bands and lines of several runs: in one plot, in a plot each, or their mean and spread. */
  runs: 'over' | 'beside' | 'mean';
  /** The value axis of scalars. */
  curves: 'linear' | 'log';
  /** Rows of a drawn histogram. */
  bins: number;
  /** Share of extreme elements that a robust range leaves out. */
  reject: number;
}

export const CHART_DEFAULTS: ChartOptions = {
  mode: 'heat',
  statistic: 'mean',
  range: 'robust',
  scale: 'auto',
  counts: 'linear',
  time: 'step',
  runs: 'over',
  curves: 'linear',
  bins: 64,
  reject: 0.1,
};

/** Rows of a histogram at most: more than a screen has. */
const MOST_BINS = 4096;

/** The options that a session was recorded with. The record may be anybody's, or lack them. */
export function recordedOptions({bins, reject_outlier_proportion}: Pick<Session, 'bins' | 'reject_outlier_proportion'>): Pick<ChartOptions, 'bins' | 'reject'> {
  return {bins: bins >= 1 ? Math.min(bins, MOST_BINS) : CHART_DEFAULTS.bins, reject: reject_outlier_proportion};
}

/** What a strip shows where histograms of several steps were chosen instead of one. */
export function stripMode(mode: ChartOptions['mode']): StripMode {
  return mode === 'ridge' || mode === 'overlay' ? 'heat' : mode;
}
