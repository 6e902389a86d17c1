/** One series: its strip, and its statistics at the chosen step. */

import type {JSX} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';

import type {SeriesInfo} from '../../api/types';
import {Elements, Facts} from '../../charts/Facts';
import {Strip} from '../../charts/Strip';
import {seriesName} from '../../graph/labels';
import {graph} from '../state/choices';
import {SaveTable} from './SaveTable';
import {closeUps, liveHistories} from '../../panels/live';

const TITLES: Record<SeriesInfo['kind'], string> = {
  value: 'value',
  grad: 'gradient',
  grad_norm: 'gradient norm per sample',
  optimizer_grad: 'gradient the optimizer took',
  update: 'update',
  update_ratio: 'update-to-weight ratio',
};

/** The chart of a series, fetched while it is shown. `subject` is whose tensor it is. */
export function Chart({series, subject}: {series: SeriesInfo; subject: string}): JSX.Element {
  const history = liveHistories.of(series.series);
  const chosen = useMemo(() => closeUps.of(series.series, history), [series.series]);
  useEffect(() => liveHistories.want(series.series), [series.series]);
  useEffect(() => closeUps.want(series.series, history), [series.series]);
  const name = `${subject}, ${seriesName(graph.value, series)}, ${TITLES[series.kind]}`;
  return (
    <figure class="chart">
      <figcaption>
        {TITLES[series.kind]}
        <Elements history={chosen} />
        <SaveTable name={name} history={history} />
      </figcaption>
      <Strip name={name} history={history} chosen={chosen} />
      <Facts history={chosen} />
    </figure>
  );
}
