/** The histograms of all runs at the step on show, on top of each other, and their statistics in a table. */

import type {JSX} from 'preact';
import {useMemo, useRef} from 'preact/hooks';
import {useDerived} from '../../charts/derived';
import {axisNumber} from '../../charts/format';
import {valueTicks} from '../../charts/scale';
import {useView} from '../../charts/view';
import {runColour, runDashes} from '../../comparison/choice';
import {heightOf, outlinePath, outlinesOf} from '../../comparison/outlines';
import type {Outlines, Spread} from '../../comparison/outlines';
import {boundsOf, entryOf, hasHistogram, histogramOf, reached} from '../../history';
import type {RunSeries} from './group';
import {StatisticsTable} from './StatisticsTable';

const HEIGHT = 72;
const BOTTOM = 15;
/** More fills than this would add up to grey. */
const FEW = 3;

export function StepOutlines({parts}: {parts: readonly RunSeries[]}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const {width, isVisible} = useView(box);
  const {options} = parts[0]!.run.setting;
  const entries = useDerived(() => parts.map(entryOnShow), [parts]);
  const outlines = useDerived(() => outlinesOf(entries.value.map((entry, i) => spreadOf(parts[i]!, entry)), options.value), [entries, options]);
  const isWithout = useDerived(() => parts.some(({chosen}, i) => entries.value[i]! >= 0 && !hasHistogram(chosen.value!, entries.value[i]!)), [entries]);
  const hasAny = outlines.value.shares.some((one) => one !== null);
  return (
    <div class="step-outlines">
      {isWithout.value && <p class="facts-none">{hasAny ? 'some runs have no histogram here' : 'no histograms were recorded'}</p>}
      <div ref={box} style={isWithout.value && !hasAny ? {height: '1px'} : {height: `${HEIGHT + BOTTOM}px`}}>
        {hasAny && isVisible.value && width.value > 60 && <Drawing parts={parts} outlines={outlines.value} width={width.value} />}
      </div>
      <StatisticsTable parts={parts} entries={entries.value} />
    </div>
  );
}

/** The entry of a run's history at its step beside the one on show; -1 without one. */
function entryOnShow({chosen, run}: RunSeries): number {
  const [history, frame] = [chosen.value, run.model.frame.value];
  return history === null || frame === null ? -1 : entryOf(history, reached(history, frame));
}

function spreadOf({chosen}: RunSeries, entry: number): Spread | null {
  const history = chosen.value;
  return history === null || entry < 0 ? null : {histogram: histogramOf(history, entry), bounds: boundsOf(history, entry)};
}

function Drawing({parts, outlines, width}: {parts: readonly RunSeries[]; outlines: Outlines; width: number}): JSX.Element {
  const {shares, peak} = outlines;
  const {counts} = parts[0]!.run.setting.options.value;
  const height = (share: number): number => heightOf(share, peak, counts);
  const paths = useMemo(() => shares.map((one) => (one === null ? null : outlinePath(one, height, {width, height: HEIGHT}))), [outlines, width, counts]);
  return (
    <svg width={width} height={HEIGHT + BOTTOM} role="img" aria-label={`Histograms of ${shares.filter((one) => one !== null).length} runs at the step on show`}>
      <line class="outlines-base" x1={0} x2={width} y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
      {parts.length <= FEW && paths.map((path, i) => path !== null && <path key={`fill ${i}`} class="outline-fill" d={path} style={{fill: runColour(parts[i]!.run.number)}} />)}
      {paths
        .map((path, i) => {
          const {number} = parts[i]!.run;
          return path !== null && <path key={i} class="outline" d={path} style={{stroke: runColour(number)}} stroke-dasharray={runDashes(number).join(' ') || undefined} />;
        })
        .reverse()}
      <Ticks outlines={outlines} width={width} />
    </svg>
  );
}

function Ticks({outlines: {grid}, width}: {outlines: Outlines; width: number}): JSX.Element {
  const {scale} = grid;
  const between = valueTicks(scale, Math.floor(width / 90)).map((value) => ({value, x: scale.position(value) * width}));
  const ticks = between.filter(({x}) => x >= 0 && x <= width);
  return (
    <g class="outline-ticks">
      {ticks.map(({value, x}) => (
        <g key={value}>
          <line x1={x} x2={x} y1={HEIGHT} y2={HEIGHT + 3} />
          <text x={Math.max(8, Math.min(width - 10, x))} y={HEIGHT + 13}>
            {axisNumber(value, scale.kind === 'linear' ? scale.high - scale.low : Math.abs(value))}
          </text>
        </g>
      ))}
    </g>
  );
}
