/** One series: its strip, and its statistics at the step on show. */

import type {JSX} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';

import type {ModuleGraph, SeriesInfo} from '../../api/types';
import {useDerived} from '../../charts/derived';
import {Elements, Facts} from '../../charts/Facts';
import {Ridges} from '../../charts/Ridges';
import {Strip} from '../../charts/Strip';
import {seriesName} from '../../graph/labels';
import {lacksHistograms} from '../../history';
import type {Model} from '../../model/model';
import type {Setting} from '../../charts/setting';
import {bandOf} from '../findings/found';
import {SaveTable} from './SaveTable';

/** What a chart is called beside its tensor. */
export const TITLES: Record<SeriesInfo['kind'], string> = {
  value: 'value',
  grad: 'gradient',
  grad_norm: 'gradient norm per sample',
  optimizer_grad: 'gradient the optimizer took',
  update: 'update',
  update_ratio: 'update-to-weight ratio',
  time: 'time of forward, in seconds',
  memory: 'memory of outputs, in bytes',
};

export interface ChartProps {
  model: Model;
  setting: Setting;
  /** One of the model's. */
  series: SeriesInfo;
  /** The module or tensor that it is of. */
  subject: string;
}

/** The chart of a series, fetched while it is shown. */
export function Chart({model, setting, series, subject}: ChartProps): JSX.Element {
  const history = model.histories.of(series.series);
  const chosen = useMemo(() => model.closeUps.of(series.series, history), [model, history]);
  const band = useDerived(() => bandOf(series), [series]);
  useEffect(() => model.histories.want(series.series), [model, series.series]);
  useEffect(() => model.closeUps.want(series.series, history), [model, history]);
  const name = chartName(subject, model.graph.value, series);
  const {mode} = setting.options.value;
  const isWithout = useDerived(() => history.value !== null && lacksHistograms(history.value), [history]).value;
  return (
    <figure class="chart">
      <figcaption>
        <span title={TITLES[series.kind]}>{TITLES[series.kind]}</span>
        <Elements history={chosen} setting={setting} />
        <SaveTable model={model} name={name} history={history} />
      </figcaption>
      {!isWithout && (mode === 'ridge' || mode === 'overlay') ? (
        <Ridges name={name} history={history} setting={setting} />
      ) : (
        <Strip name={name} history={history} chosen={chosen} setting={setting} band={band} />
      )}
      {isWithout && mode !== 'line' && <WithoutHistograms />}
      <Facts history={chosen} setting={setting} />
    </figure>
  );
}

/** What the strip draws in place of histograms. */
function WithoutHistograms(): JSX.Element {
  return (
    <p class="facts-none" title="watch(log=&quot;scalars&quot;) records none. The line is the mean; the areas are 1 and 2 standard deviations around it, and all from the smallest to the largest element.">
      no histograms: mean ± 1, 2 std, min to max
    </p>
  );
}

/** What is drawn, for those who cannot see it: `layer1.conv1, output, value`. */
export function chartName(subject: string, graph: ModuleGraph | null, series: SeriesInfo): string {
  return `${subject}, ${seriesName(graph, series)}, ${TITLES[series.kind]}`;
}
