/** How strips and curves are drawn. */

import type {TimeKind} from './timeAxis';

export interface ChartOptions {
  mode: 'heat' | 'bands' | 'line';
  /** Drawn by `line`: a name of `MEASURES`. */
  statistic: string;
  range: 'robust' | 'full';
  /** `auto` leaves it to the data. */
  scale: 'auto' | 'linear' | 'symlog';
  counts: 'linear' | 'log';
  time: TimeKind;
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
  curves: 'linear',
  bins: 64,
  reject: 0.1,
};
