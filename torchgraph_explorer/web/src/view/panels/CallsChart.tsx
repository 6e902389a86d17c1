/** One tensor of all calls of a repeated module, at the step on show. */

import './CallsChart.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';

import {answers, page} from '../../api/client';
import {STATISTICS} from '../../api/types';
import type {SeriesInfo} from '../../api/types';
import {BOX, overCalls, rangeText, xOf} from '../../charts/overCalls';
import type {CallRow} from '../../charts/overCalls';
import type {Model} from '../../model/model';
import {formatNumber, stepName, wholeNumber} from '../../numberText';
import {nonfinite, rowAt} from '../../statistics';
import {useAnswer} from '../useAnswer';
import {chartName, TITLES} from './Chart';

export interface CallsChartProps {
  model: Model;
  /** Of the chosen call. */
  series: SeriesInfo;
  subject: string;
  onChoose: (call: number) => void;
}

export function CallsChart({model, series, subject, onChoose}: CallsChartProps): JSX.Element {
  const all = model.data.value?.series ?? [];
  const alike = useMemo(() => callsOf(all, series), [all, series.module, series.role, series.path, series.kind]);
  const statistics = model.statistics.value;
  const calls = useMemo(() => rowsOf(alike, statistics), [alike, statistics]);
  const drawn = useMemo(() => overCalls(calls, series.kind === 'grad_norm'), [calls, series.kind]);
  const pointed = useSignal<number | null>(null);
  const chosen = Math.max(0, calls.findIndex(({call}) => call === series.call));
  const at = Math.min(pointed.value ?? chosen, calls.length - 1);
  const name = chartName(subject, model.graph.value, series);
  return (
    <figure class="chart calls-chart">
      <figcaption>
        {TITLES[series.kind]}, all {wholeNumber(calls.length)} calls{statistics ? ` at ${stepName(statistics.step)}` : ''}
        {drawn.isLog && ', logarithmic'}
      </figcaption>
      <div class="calls-plot">
        <span class="calls-high">{formatNumber(drawn.high)}</span>
        <span class="calls-low">{formatNumber(drawn.low)}</span>
        <svg viewBox={`0 0 ${BOX.width} ${BOX.height}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="calls-range" d={drawn.range} />
          <path class="calls-spread" d={drawn.spread} />
          <path class="calls-mean" d={drawn.mean} />
          {drawn.bad.map((one) => (
            <path key={one} class="calls-bad" d={`M${xOf(one, calls.length)},0v${BOX.height}`} />
          ))}
          <path class="calls-chosen" d={`M${xOf(at, calls.length)},0v${BOX.height}`} />
        </svg>
        <input
          type="range"
          min={0}
          max={Math.max(0, calls.length - 1)}
          value={chosen}
          aria-label={`${name}, over calls`}
          aria-valuetext={callText(calls[chosen])}
          onInput={(event) => onChoose(calls[Number(event.currentTarget.value)]?.call ?? 0)}
          onPointerMove={(event) => (pointed.value = placeAt(event, calls.length))}
          onPointerLeave={() => (pointed.value = null)}
        />
      </div>
      <p class="calls-axis" aria-hidden="true">
        <span>call 1</span>
        <span>{wholeNumber(calls.length)}</span>
      </p>
      <p class="calls-facts">{callText(calls[at])}</p>
      <Together model={model} series={series} step={statistics?.step ?? null} name={name} />
    </figure>
  );
}

/** The histograms of all calls at the step, added up; nothing where they are not there, as on an exported page. */
function Together({model, series, step, name}: {model: Model; series: SeriesInfo; step: number | null; name: string}): JSX.Element | null {
  const {module, role, path, kind} = series;
  const key = step === null || page !== null ? null : JSON.stringify([model.name, model.data.value?.epoch, module, role, path, kind, step]);
  const {value, problem, isCurrent} = useAnswer(key, (abort) => answers.calls(model.name, series, step!, abort));
  if (isCurrent && problem !== null) return <p class="calls-facts" role="status">{`All calls together could not be fetched: ${problem}`}</p>;
  if (!isCurrent || value === null || value.counts.length === 0) return null;
  const {calls, elements, counts} = value;
  const most = Math.max(...counts);
  const width = BOX.width / counts.length;
  const text = `${wholeNumber(elements)} elements of ${wholeNumber(calls)} calls, ${rangeText(value)}`;
  return (
    <div class="calls-together">
      <svg viewBox={`0 0 ${BOX.width} ${BOX.height}`} preserveAspectRatio="none" role="img" aria-label={`${name}, histogram of all calls: ${text}`}>
        {counts.map((count, at) => (
          <rect key={at} x={at * width} width={width} y={BOX.height * (1 - count / most)} height={(BOX.height * count) / most} />
        ))}
      </svg>
      <p class="calls-facts">{`All calls together: ${text}`}</p>
    </div>
  );
}

function callsOf(all: readonly SeriesInfo[], {module, role, path, kind}: SeriesInfo): SeriesInfo[] {
  const alike = all.filter((one) => one.module === module && one.role === role && one.path === path && one.kind === kind && one.call !== null);
  return alike.sort((a, b) => (a.call ?? 0) - (b.call ?? 0));
}

function rowsOf(series: readonly SeriesInfo[], answer: Model['statistics']['value']): CallRow[] {
  const rows = new Map(Array.from(answer?.series ?? [], (one, row) => [one, row]));
  const values = answer?.statistics ?? new Float32Array();
  return series.map(({series: id, call}) => {
    const row = rows.get(id);
    const isThere = row !== undefined && values.length >= (row + 1) * STATISTICS.length;
    return {call: call ?? 0, row: isThere ? rowAt(values, row) : null};
  });
}

function placeAt({clientX, currentTarget}: JSX.TargetedPointerEvent<HTMLInputElement>, count: number): number {
  const {left, width} = currentTarget.getBoundingClientRect();
  return Math.min(count - 1, Math.max(0, Math.floor(((clientX - left) / width) * count)));
}

/** `call 413: mean 0.031, std 0.2, from −0.4 to 0.5`. */
function callText(one: CallRow | undefined): string {
  if (one === undefined) return '';
  const name = `call ${wholeNumber(one.call + 1)}`;
  if (one.row === null) return `${name}: not recorded at this step`;
  const bad = nonfinite(one.row);
  const numbers = `mean ${formatNumber(one.row.mean)}, std ${formatNumber(one.row.std)}, from ${formatNumber(one.row.min)} to ${formatNumber(one.row.max)}`;
  return `${name}: ${bad > 0 ? `${wholeNumber(bad)} NaN or infinite; ` : ''}${one.row.sampled > 0 ? numbers : 'no finite elements'}`;
}
