/** One scalar over time: a curve for each label, with the exact value under the pointer. A press goes to the step. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import type {ScalarValues} from '../../api/types';
import {curvePaths, curvePoints, curveScale, entriesAt, joinedValues, mergedEntry} from '../../charts/curve';
import type {CurveBox, CurvePoint, CurveScale} from '../../charts/curve';
import {exactNumber} from '../../charts/format';
import {formatNumber, stepName, wholeNumber} from '../../numberText';
import {timeTicks} from '../../charts/timeAxis';
import type {Fact} from '../../charts/tipFacts';
import {useView} from '../../charts/view';
import {runLetter} from '../../comparison/choice';
import type {Model} from '../../model/model';
import {numberOf} from '../../model/scalars';
import {compared} from '../comparison/state';
import {IconButton} from '../controls/Icon';
import {textWidth} from '../pane/textWidth';
import {tip} from '../panels/setting';
import {curveName, timesOf} from '../state/axis';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {axisLabels} from './axisLabels';
import {curvesOf, lookOf} from './curves';
import type {Curve, LineLook} from './curves';

const HEIGHT = 84;
const GUTTER = 46;
const LONGEST_WHOLE = 1e12;
const TOP = 6;
const BOTTOM = 17;
const RIGHT = 6;

/** Beyond so many labels the legend may scroll, which the keyboard does too. */
const FEW_LABELS = 4;

/** The ends of the time axis of all scalars, as numbers on it. */
export interface Ends {
  left: number;
  right: number;
}

interface ScalarChartProps {
  name: string;
  model: Model;
  ends: ReadonlySignal<Ends>;
}

export function ScalarChart({name, model, ends}: ScalarChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const {width, isVisible} = useView(box);
  const isSeen = isVisible.value;
  const others = compared.value.slice(1);
  const models = [model, ...others.map((one) => one.model)];
  useEffect(() => {
    const ends = isSeen ? models.map((one) => one.scalars.want(name)) : [];
    return () => ends.forEach((end) => end());
  }, [isSeen, name, ...models]);
  const curves = curvesOf([{model, number: 0, label: compared.value[0]?.label ?? name}, ...others], name);
  const hasLabels = curves.some(({tag}) => tag !== null);
  const isLogged = models.some(({scalars: {data}}) => numberOf(data.value, name) >= 0 && !data.value?.values.has(numberOf(data.value, name)));
  const isBehind = curveName.value === name;
  return (
    <figure class="scalar">
      <figcaption>
        <span class="scalar-name" title={name}>
          <bdi>{name}</bdi>
        </span>
        {!hasLabels && <Latest values={curves.find(({number}) => number === 0)?.values ?? null} />}
        <IconButton
          icon="curve"
          label={`${isBehind ? 'Remove' : 'Draw'} ${name} behind the time bar`}
          isPressed={isBehind}
          onPress={() => (choices.curve.value = isBehind ? '' : name)}
        />
      </figcaption>
      {hasLabels && <Legend curves={curves} />}
      <div ref={box} class="scalar-plot" style={{height: `${TOP + HEIGHT + BOTTOM}px`}}>
        {curves.length === 0 ? (
          <span class="strip-loading">{isLogged ? 'loading …' : 'no value'}</span>
        ) : (
          width.value > GUTTER + 40 && <Plot name={name} curves={curves} width={width.value} model={model} ends={ends.value} />
        )}
      </div>
    </figure>
  );
}

/** The labels with their lines, and the last values of the run on show. */
function Legend({curves}: {curves: readonly Curve[]}): JSX.Element {
  const labels = curves.filter((one, i) => curves.findIndex(({place}) => place === one.place) === i).sort((a, b) => a.place - b.place);
  return (
    <ul class="scalar-legend" aria-label="Labels" tabIndex={labels.length > FEW_LABELS ? 0 : undefined}>
      {labels.map(({tag, place, number, values}) => {
        // In a comparison the colour is that of the run, which is not that of a label.
        const isCompared = compared.value.length > 0;
        const {colour, dashes} = lookOf({number, place}, {isCompared, hasLabels: true});
        return (
          <li key={place}>
            <svg width="18" height="8" aria-hidden="true">
              <path d="M0 4H18" style={{stroke: isCompared ? 'currentColor' : colour!}} stroke-dasharray={dashes.join(' ') || undefined} />
            </svg>
            <bdi title={tag ?? undefined}>{tag ?? 'no label'}</bdi>
            {number === 0 && <Latest values={values} />}
          </li>
        );
      })}
    </ul>
  );
}

function Latest({values}: {values: ScalarValues | null}): JSX.Element | null {
  const at = (values?.step.length ?? 0) - 1;
  if (values === null || at < 0) return null;
  return <span class={values.bad[at]! > 0 ? 'scalar-latest is-bad' : 'scalar-latest'}>{latestText(values.value[at]!)}</span>;
}

function latestText(value: number): string {
  if (!Number.isFinite(value)) return exactNumber(value);
  if (Number.isInteger(value) && Math.abs(value) >= 1e6 && Math.abs(value) < LONGEST_WHOLE) return wholeNumber(value).replace('-', '−'); // tokens, samples
  const isSmall = Math.abs(value) >= 1e-3 && Math.abs(value) < 1e-2; // as its axis is written
  return isSmall ? String(Number(value.toPrecision(3))).replace('-', '−') : formatNumber(value);
}

interface PlotProps {
  name: string;
  /** At least one. */
  curves: readonly Curve[];
  width: number;
  /** The run on show. */
  model: Model;
  ends: Ends;
}

function Plot({name, curves, width, model, ends}: PlotProps): JSX.Element {
  const {axis} = timesOf(model);
  const kind = shown.chart.value.curves;
  const scale = curveScale(joinedValues(curves.map(({values}) => values)), kind);
  const plot = {width: width - GUTTER - RIGHT, height: HEIGHT, ...ends};
  const xOf = (at: number): number => (ends.right > ends.left ? ((at - ends.left) / (ends.right - ends.left)) * plot.width : plot.width / 2);
  const placed = curves.map((curve) => ({...curve, points: curvePoints(curve.values, timesOf(curve.model).place.value)}));
  const [isCompared, hasLabels] = [compared.value.length > 0, curves.some(({tag}) => tag !== null)];
  const pointed = (event: PointerEvent | MouseEvent): Pointed[] => {
    const left = (event.currentTarget as Element).getBoundingClientRect().left + GUTTER;
    const pixel = (ends.right - ends.left) / plot.width;
    return placed.flatMap((curve) => {
      const {values, points} = curve;
      const entries = entriesAt(points, ends.left + (event.clientX - left) * pixel, pixel);
      return entries.length === 0 ? [] : [{...curve, under: mergedEntry(values, entries)}];
    });
  };
  return (
    <svg
      width={width}
      height={TOP + HEIGHT + BOTTOM}
      role="img"
      aria-label={curves.map((curve) => `${isCompared && curves.length > 1 ? `${runLetter(curve.number)} ` : ''}${summary(curve.tag === null ? name : `${name} (${curve.tag})`, curve.values)}`).join('; ')}
      onPointerMove={(event) => point(event, pointed(event), name)}
      onPointerLeave={leave}
      onClick={(event) => {
        const [first] = pointed(event);
        if (first !== undefined) choices.step.value = first.under.step[0]!;
      }}
    >
      <g transform={`translate(${GUTTER} ${TOP})`}>
        <rect class="scalar-frame" x={-0.5} y={-0.5} width={plot.width + 1} height={HEIGHT + 1} />
        {scale && <ValueAxis scale={scale} />}
        <TimeTicks ends={ends} kind={axis.value.values.length > 0 ? axis.value.kind : shown.chart.value.time} width={plot.width} xOf={xOf} />
        {[...placed].reverse().map((curve) => (
          <CurveLines key={`${curve.number} ${curve.place}`} values={curve.values} points={curve.points} scale={scale} plot={plot} xOf={xOf} look={lookOf(curve, {isCompared, hasLabels})} />
        ))}
        {scale === null && (
          <text class="scalar-empty" x={plot.width / 2} y={HEIGHT / 2}>
            {kind === 'log' && curves.some(({values}) => Array.from(values.high).some(Number.isFinite)) ? 'no value is above 0' : 'no value is finite'}
          </text>
        )}
        <StepLine step={shown.step.value} class="scalar-chosen" model={model} xOf={xOf} />
        <StepLine step={choices.pointedStep.value} class="scalar-pointed" model={model} xOf={xOf} />
        {placed.every(({points}) => points.length === 0) && curves.some(({values}) => values.step.length > 0) && (
          <text class="scalar-empty" x={plot.width / 2} y={HEIGHT / 2}>
            not on this time axis
          </text>
        )}
      </g>
    </svg>
  );
}

interface CurveLinesProps {
  values: ScalarValues;
  points: readonly CurvePoint[];
  scale: CurveScale | null;
  plot: CurveBox;
  xOf: (at: number) => number;
  look: LineLook;
}

function CurveLines({values, points, scale, plot, xOf, look: {colour, dashes}}: CurveLinesProps): JSX.Element {
  const paths = scale && curvePaths(values, points, scale, plot);
  const bad = paths?.bad ?? points.map(({from}) => xOf(from));
  const style = colour === null ? {} : {stroke: colour};
  const fill = colour === null ? {} : {fill: colour};
  return (
    <>
      {bad.map((x) => (
        <rect key={x} class="scalar-bad" x={x - 1} width={2} y={0} height={HEIGHT} style={fill} />
      ))}
      {paths && <path class="scalar-range" d={paths.range} style={style} />}
      {paths && <path class="scalar-line" d={paths.line} style={style} stroke-dasharray={dashes.join(' ') || undefined} />}
      {paths?.dots.map(([x, y]) => <circle key={x} class="scalar-dot" cx={x} cy={y} r={2} style={fill} />)}
    </>
  );
}

function summary(name: string, {step, value, count}: ScalarValues): string {
  const values = count.reduce((sum, one) => sum + one, 0);
  const last = step.length - 1;
  if (last < 0) return `${name}: no values`;
  return `${name}: ${wholeNumber(values)} values, the last ${exactNumber(value[last]!)} at ${stepName(step[last]!)}`;
}

/** Whether a number has room beside the value axis. */
function fits(text: string): boolean {
  return textWidth(text, {weight: 400, px: 10}) <= GUTTER - 7;
}

/** The value axis: a round number, and the ends, unless these read the same, as where all values are one number. */
function ValueAxis({scale}: {scale: CurveScale}): JSX.Element {
  return (
    <g class="scalar-axis">
      {axisLabels(scale, fits).map(({text, value}) => (
        <g key={value} transform={`translate(0 ${(1 - scale.position(value)) * HEIGHT})`}>
          <line x1={-3} x2={0} />
          <text x={-6} y={3} {...(fits(text) ? {} : {textLength: GUTTER - 8, lengthAdjust: 'spacingAndGlyphs'})}>
            {text}
          </text>
        </g>
      ))}
    </g>
  );
}

interface TimeTicksProps {
  ends: Ends;
  kind: Parameters<typeof timeTicks>[0]['kind'];
  width: number;
  xOf: (at: number) => number;
}

function TimeTicks({ends, kind, width, xOf}: TimeTicksProps): JSX.Element {
  const ticks = timeTicks({kind, low: ends.left, high: ends.right}, Math.max(2, Math.floor(width / 80)));
  let free = -Infinity;
  return (
    <g class="scalar-ticks">
      {ticks.map(({value, label}) => {
        const half = label.length * 3;
        const x = Math.max(half - 8, Math.min(width - half + 4, xOf(value)));
        const hasRoom = x - half > free;
        if (hasRoom) free = x + half + 4;
        return (
          <g key={value}>
            <line x1={xOf(value)} x2={xOf(value)} y1={HEIGHT} y2={HEIGHT + 3} />
            {hasRoom && (
              <text x={x} y={HEIGHT + 13}>
                {label}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

/** A vertical line at a recorded step, as in the strips. */
function StepLine({step, class: name, model, xOf}: {step: number | null; class: string; model: Model; xOf: (at: number) => number}): JSX.Element | null {
  const {axis, frames, place} = timesOf(model);
  if (step === null) return null;
  const frame = frames.value.steps.length > 0 ? Array.prototype.indexOf.call(frames.value.steps, step) : -1;
  const at = frame >= 0 ? axis.value.values[frame]! : place.value(step, NaN);
  if (Number.isNaN(at)) return null;
  return <line class={name} x1={xOf(at)} x2={xOf(at)} y1={0} y2={HEIGHT} />;
}

/** A curve's values under the pointer. */
interface Pointed extends Curve {
  under: ScalarValues;
}

function point(event: PointerEvent, pointed: readonly Pointed[], name: string): void {
  const [first] = pointed;
  if (first === undefined) return leave();
  if (first.number === 0) choices.pointedStep.value = first.under.step[0]!;
  const isSingle = compared.value.length === 0 && first.tag === null && pointed.length === 1;
  const facts = isSingle ? factsOf(name, first.under) : pointed.map(curveFact);
  tip.value = {x: event.clientX, y: event.clientY, title: isSingle ? titleOf(first.under) : name, facts};
}

function curveFact({under, number, label, tag, place}: Pointed): Fact {
  const run = compared.value.length === 0 ? [] : [`${runLetter(number)} ${label}`];
  const line = [...run, ...(place > 0 ? [tag!] : run.length > 0 ? [] : ['no label'])].join(', ');
  return [`${line} (${titleOf(under)})`, under.count[0] === 1 ? exactNumber(under.value[0]!) : latestText(under.value[0]!)];
}

function leave(): void {
  choices.pointedStep.value = null;
  tip.value = null;
}

function titleOf({step, last}: ScalarValues): string {
  const [from, to] = [step[0]!, last[0]!];
  return from === to ? stepName(from) : `steps ${wholeNumber(from)} – ${wholeNumber(to)}`;
}

/** The exact value; where several are under the pointer, their mean and what they are between. */
function factsOf(name: string, {value, count, bad, low, high}: ScalarValues): Fact[] {
  if (count[0] === 1) return [[name, exactNumber(value[0]!)]];
  const facts: Fact[] = Number.isNaN(value[0]!)
    ? []
    : [
        [`mean of ${count[0]! - bad[0]!}`, exactNumber(value[0]!)],
        ['min', exactNumber(low[0]!)],
        ['max', exactNumber(high[0]!)],
      ];
  return bad[0]! > 0 ? [...facts, ['NaN or ∞', String(bad[0])]] : facts;
}
