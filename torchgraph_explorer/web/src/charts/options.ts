/** How strips are drawn. */

export interface ChartOptions {
  mode: 'heat' | 'bands' | 'line';
  /** Drawn by `line`: a name of `MEASURES`. */
  statistic: string;
  range: 'robust' | 'full';
  /** `auto` leaves it to the data. */
  scale: 'auto' | 'linear' | 'symlog';
  counts: 'linear' | 'log';
  time: 'step' | 'clock' | 'wall';
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
  bins: 64,
  reject: 0.1,
};
