/** The words of the chosen finding, with the statistic that its rule looks at and the band that the rule allows. */

import './findings.css';

import {useMemo} from 'preact/hooks';
import {page} from '../../api/client';
import type {Band, Finding, SeriesInfo} from '../../api/types';
import {useDerived} from '../../charts/derived';
import type {Setting} from '../../charts/setting';
import {bandIn, bandText} from '../../findings/bands';
import {findingKey, placeText, titleOf, whenText} from '../../findings/names';
import {seriesOf} from '../../findings/places';
import type {Model} from '../../model/model';
import {IconButton} from '../controls/Icon';
import {Chart} from '../panels/Chart';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {AboutKind} from './AboutKind';
import {FindingText} from './FindingText';
import {found} from './found';
import {goToFinding} from './goToFinding';
import {showRelated} from '../xray/face';
import {SeverityIcon} from './SeverityIcon';

interface FindingCardProps {
  finding: Finding;
  model: Model;
  setting: Setting;
}

export function FindingCard({finding, model, setting}: FindingCardProps) {
  const {severity, kind, text, advice} = finding;
  const title = titleOf(kind);
  const series = seriesOf(finding, model.data.value?.series ?? []);
  const band = series && bandIn(finding, series);
  const cause = found.value?.findings.find(({id}) => finding.causes.includes(id));
  return (
    <article class={`finding-card is-${severity}`} aria-label={`Finding: ${title}`}>
      <header>
        <SeverityIcon severity={severity} />
        <h3>{title}</h3>
        <IconButton icon="close" label={`Close the finding ${title}`} onPress={() => (choices.finding.value = null)} />
      </header>
      <p class="finding-where">
        {placeText(finding, model.data.value?.session?.class_name ?? '')}, {whenText(finding, found.value?.looked_at?.last ?? null)}
      </p>
      <p>
        <FindingText text={text} />
      </p>
      <p class="finding-advice">
        <b>Try:</b> <FindingText text={advice} />
      </p>
      {cause && (
        <p class="finding-cause">
          Follows from{' '}
          <button type="button" onClick={() => goToFinding(cause)}>
            {titleOf(cause.kind)}
          </button>
        </p>
      )}
      {page === null && (
        <button type="button" class="finding-related" onClick={() => showRelated(finding)}>
          What moved first?
        </button>
      )}
      <AboutKind key={findingKey(finding)} kind={kind} />
      {series && <OwnChart key={findingKey(finding)} series={series} band={band} title={title} model={model} setting={setting} />}
    </article>
  );
}

interface OwnChartProps {
  series: SeriesInfo;
  band: Band | null;
  title: string;
  model: Model;
  setting: Setting;
}

/** The strip of the tensor; of what the band bounds, whatever the other strips show. */
function OwnChart({series, band, title, model, setting}: OwnChartProps) {
  const options = useDerived(() => {
    const usual = setting.options.value;
    if (band === null) return usual;
    if (band.statistic === 'elements') {
      const scale = usual.scale === 'auto' ? 'symlog' : usual.scale; // on a linear one the limits may be one line
      return {...usual, scale, mode: usual.mode === 'line' ? 'heat' : usual.mode} as const;
    }
    return {...usual, mode: 'line' as const, statistic: band.statistic};
  }, [setting, band]);
  const own = useMemo(() => ({...setting, options}), [setting, options]);
  return (
    <>
      {band && (
        <p class="finding-band">
          <i aria-hidden="true" />
          {bandText(band)}
        </p>
      )}
      <Chart model={model} setting={own} series={series} subject={`Finding ${title}: ${series.module}`} />
    </>
  );
}

/** The chosen finding above all panels, where none of them is of its place. */
export function HeadCard({finding, model, setting}: FindingCardProps) {
  void shown.graph.value;
  return (
    <div class="finding-at-head">
      <FindingCard finding={finding} model={model} setting={setting} />
    </div>
  );
}
