/** The tensors of one role, each with its value and its gradient. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useId, useRef} from 'preact/hooks';

import {page} from '../../api/client';
import type {SeriesInfo, TensorInfo} from '../../api/types';
import {tensorLine} from '../../graph/facts';
import {seriesName} from '../../graph/labels';
import {lettersOf, variedText} from '../../graph/shapes';
import {useReaction} from '../../charts/derived';
import type {Setting} from '../../charts/setting';
import type {Model} from '../../model/model';
import type {TensorSeries} from '../../model/series';
import {RunsChart} from '../comparison/RunsChart';
import {compared, keyOf} from '../comparison/state';
import {ValuesLink} from '../tensors/ValuesLink';
import {CallsChart} from './CallsChart';
import {Chart, chartName, TITLES} from './Chart';
import {missingGradient} from './missingGradient';
import {isNewlySought, isSought} from './sought';
import type {Subject} from './subject';

export interface SectionProps {
  title: string;
  tensors: readonly TensorSeries[];
  subject: Subject;
  model: Model;
  setting: Setting;
  /** Chooses a call, where all calls of the module are shown; else null. */
  onCall?: ((call: number) => void) | null;
}

/** A section that can be folded. Folded charts are neither drawn nor fetched. */
export function Section({title, tensors, ...shared}: SectionProps): JSX.Element | null {
  const isOpen = useSignal(true);
  const id = useId();
  if (tensors.length === 0) return null;
  return (
    <section class="panel-section">
      <h3>
        <button type="button" aria-expanded={isOpen.value} aria-controls={id} onClick={() => (isOpen.value = !isOpen.value)}>
          <span class="fold" aria-hidden="true" />
          {title}
          {tensors.length > 1 && <span class="panel-count">{tensors.length}</span>}
        </button>
      </h3>
      <div id={id}>{isOpen.value && tensors.map((tensor) => <Tensor key={tensor.path} tensor={tensor} {...shared} />)}</div>
    </section>
  );
}

interface TensorProps extends Pick<SectionProps, 'subject' | 'model' | 'setting' | 'onCall'> {
  tensor: TensorSeries;
}

function Tensor({tensor, subject, model, setting, onCall = null}: TensorProps): JSX.Element {
  const {value, gradient, optimizer} = tensor;
  const series = (value ?? gradient ?? optimizer[0])!;
  const info = subject.tensor(series);
  const name = [subject.title, subject.call].filter(Boolean).join(' ');
  const graph = model.graph.value;
  const runs = compared.value;
  const chartOf = (one: SeriesInfo): JSX.Element =>
    onCall !== null && one.call !== null ? (
      <CallsChart key={`calls ${one.kind}`} model={model} series={one} subject={subject.title} onChoose={onCall} />
    ) : runs.length > 0 ? (
      <RunsChart key={keyOf(runs, one)} runs={runs} series={one} title={TITLES[one.kind]} name={chartName(name, graph, one)} />
    ) : (
      <Chart key={JSON.stringify([model.name, one.series])} model={model} setting={setting} series={one} subject={name} />
    );
  const ref = useRef<HTMLElement>(null);
  useReaction(() => {
    if (isNewlySought(series)) requestAnimationFrame(() => ref.current?.scrollIntoView({block: 'nearest', inline: 'nearest'}));
  }, [series]);
  return (
    <article ref={ref} class={`tensor${isSought(series) ? ' is-sought' : ''}`}>
      <h4>
        <span class="tensor-path">{seriesName(graph, series)}</span>
        {info && graph && (
          <span class="tensor-shape" title={variedText(info, lettersOf(graph)) || undefined}>
            {tensorLine(graph, info)}
          </span>
        )}
        <ValuesLink series={series} />
        {gradient === null && value !== null && <NoGradient model={model} series={value} info={info} />}
      </h4>
      <div class="tensor-charts">
        {[value, gradient, ...optimizer].flatMap((one) => (one === null ? [] : [chartOf(one)]))}
      </div>
    </article>
  );
}

/** Why there is no gradient to show. */
function NoGradient({model, series, info}: {model: Model; series: SeriesInfo; info: TensorInfo | null}): JSX.Element {
  const data = model.data.value;
  const log = data?.session?.log ?? null;
  const isFinished = data?.finished != null;
  const {text, why} = missingGradient({series, info, log, inPage: page !== null, isFinished});
  return (
    <span class="tensor-none" title={why || undefined}>
      {text}
    </span>
  );
}
