/** The tensors of one role, each with its value and its gradient. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useId} from 'preact/hooks';

import {page} from '../../api/client';
import type {SeriesInfo, TensorInfo} from '../../api/types';
import {tensorLine} from '../../graph/facts';
import {seriesName} from '../../graph/labels';
import {lettersOf, variedText} from '../../graph/shapes';
import {data, graph, type TensorSeries} from '../state/choices';
import {Chart} from './Chart';
import {missingGradient} from './missingGradient';
import type {Subject} from './subject';

export interface SectionProps {
  title: string;
  tensors: readonly TensorSeries[];
  subject: Subject;
}

/** A section that can be folded. Folded charts are neither drawn nor fetched. */
export function Section({title, tensors, subject}: SectionProps): JSX.Element | null {
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
      <div id={id}>{isOpen.value && tensors.map((tensor) => <Tensor key={tensor.path} tensor={tensor} subject={subject} />)}</div>
    </section>
  );
}

function Tensor({tensor, subject}: {tensor: TensorSeries; subject: Subject}): JSX.Element {
  const {value, gradient, optimizer} = tensor;
  const series = (value ?? gradient ?? optimizer[0])!;
  const info = subject.tensor(series);
  const name = [subject.title, subject.call].filter(Boolean).join(' ');
  return (
    <article class="tensor">
      <h4>
        <span class="tensor-path">{seriesName(graph.value, series)}</span>
        {info && graph.value && (
          <span class="tensor-shape" title={variedText(info, lettersOf(graph.value)) || undefined}>
            {tensorLine(graph.value, info)}
          </span>
        )}
        {gradient === null && value !== null && <NoGradient series={value} info={info} />}
      </h4>
      <div class="tensor-charts">
        {value && <Chart key={value.series} series={value} subject={name} />}
        {gradient && <Chart key={gradient.series} series={gradient} subject={name} />}
        {optimizer.map((one) => (
          <Chart key={one.series} series={one} subject={name} />
        ))}
      </div>
    </article>
  );
}

/** Why there is no gradient to show. */
function NoGradient({series, info}: {series: SeriesInfo; info: TensorInfo | null}): JSX.Element {
  const log = data.value?.session?.log ?? null;
  const isFinished = data.value?.finished != null;
  const {text, why} = missingGradient({series, info, log, inPage: page !== null, isFinished});
  return (
    <span class="tensor-none" title={why || undefined}>
      {text}
    </span>
  );
}
