/** One series in all runs: their strips on one axis, or all in one plot; and their histograms at the step on show. */

import './comparison.css';

import type {JSX} from 'preact';
import {useMemo, useRef} from 'preact/hooks';
import type {SeriesInfo} from '../../api/types';
import {useDerived} from '../../charts/derived';
import {Ridges} from '../../charts/Ridges';
import {Strip} from '../../charts/Strip';
import {useNearness} from '../../charts/view';
import {bandOf} from '../findings/found';
import {SaveTable} from '../panels/SaveTable';
import {BesideStep} from './BesideStep';
import {useGroup, useMode, useRunSeries} from './group';
import type {RunSeries} from './group';
import {RunChip} from './RunChip';
import {RunsPlot} from './RunsPlot';
import {StepOutlines} from './StepOutlines';
import type {Compared} from './state';

/** A strip alone is twice as high. */
const ROOM = {height: 64};

interface RunsChartProps {
  runs: readonly Compared[];
  /** Of the run on show. */
  series: SeriesInfo;
  /** `value`, `gradient`. */
  title: string;
  /** `layer1.conv1, output, value`. */
  name: string;
}

/** Made, and its histories fetched, while it is in sight or near: a panel may have hundreds of series, each in many runs. */
export function RunsChart(props: RunsChartProps): JSX.Element {
  const box = useRef<HTMLElement>(null);
  const {isNear, height} = useNearness(box);
  const room = isNear.value ? {} : {style: {height: `${height.value ?? usualHeight(props.runs.length)}px`}};
  return (
    <figure ref={box} class="chart runs-chart" {...room}>
      {isNear.value ? <Content {...props} /> : <figcaption>{props.title}</figcaption>}
    </figure>
  );
}

/** About what a chart of so many runs takes, side by side with their statistics, so that little moves when it is made. */
function usualHeight(runs: number): number {
  return 150 + 112 * runs;
}

function Content({runs, series, title, name}: RunsChartProps): JSX.Element {
  const parts = useRunSeries(runs, series);
  const mode = useMode(runs).value;
  const there = useMemo(() => parts.filter((part) => part.series !== null), [parts]);
  return (
    <>
      <figcaption>
        {title}
        <SaveTable model={runs[0]!.model} name={name} history={parts[0]!.history} />
      </figcaption>
      {mode === 'strips' && <Strips parts={parts} name={name} series={series} />}
      {mode === 'plot' && <RunsPlot parts={parts} name={name} />}
      {mode === 'steps' && parts.map((part) => <Steps key={part.run.number} part={part} parts={there} name={name} />)}
      {mode === 'plot' && parts.map((part) => part.series === null && <None key={part.run.number} run={part.run} />)}
      <StepOutlines parts={there} />
    </>
  );
}

interface StripsProps {
  parts: readonly RunSeries[];
  name: string;
  series: SeriesInfo;
}

function Strips({parts, name, series}: StripsProps): JSX.Element {
  const group = useGroup(parts, ROOM);
  const band = useDerived(() => bandOf(series), [series]);
  return (
    <>
      {parts.map(({run, series: own, history, chosen}, i) =>
        own === null ? (
          <None key={run.number} run={run} />
        ) : (
          <div key={`${run.number} ${own?.series}`} class="run-strip">
            <RunLine run={run} />
            <Strip
              name={`${run.label}: ${name}`}
              history={history}
              chosen={chosen}
              setting={run.setting}
              together={group.together[i]!}
              {...(run.number === 0 ? {band} : {})}
            />
          </div>
        ),
      )}
    </>
  );
}

/** Whose strip this is, and at which of its steps. */
function RunLine({run}: {run: Compared}): JSX.Element {
  return (
    <div class="run-line">
      <RunChip number={run.number} />
      <span class="run-label" title={run.run}>
        {run.label}
      </span>
      <BesideStep run={run} />
    </div>
  );
}

function None({run}: {run: Compared}): JSX.Element {
  return (
    <div class="run-line is-none">
      <RunChip number={run.number} />
      <span class="run-label" title={run.run}>
        {run.label}
      </span>
      <span>has no such series</span>
    </div>
  );
}

function Steps({part: {run, series, history}, parts, name}: {part: RunSeries; parts: readonly RunSeries[]; name: string}): JSX.Element {
  const others = useMemo(() => parts.map((one) => one.history), [parts]);
  if (series === null) return <None run={run} />;
  return (
    <div class="run-strip">
      <RunLine run={run} />
      <Ridges name={`${run.label}: ${name}`} history={history} setting={run.setting} others={others} />
    </div>
  );
}
