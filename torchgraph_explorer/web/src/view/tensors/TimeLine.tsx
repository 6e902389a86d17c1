/** An element, or facts of all elements, over the kept steps or over the calls of the step. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import type {KeptInfo, TensorLine} from '../../api/tensors';
import {formatNumber, formatRange, wholeNumber} from '../../numberText';
import {Segments} from '../controls/Select';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import type {Over} from '../../tensors/choice';
import {Fold} from './Controls';
import {levelOf, linePlot, nearest} from '../../tensors/linePlot';
import {useLine} from './parts';
import {isOpen, toggle} from './sections';
import {product} from '../../tensors/request';
import {shortest} from '../../tensors/shade';
import * as store from './store';

export function TimeLine({info, step}: {info: KeptInfo; step: number}): JSX.Element | null {
  if (store.steps.value.length < 2 && store.calls.value.length < 2) return null;
  return (
    <Fold title="Over time" isOpen={isOpen('time')} onToggle={() => toggle('time')}>
      <Lines info={info} step={step} />
    </Fold>
  );
}

const OVERS = [
  {value: 'steps', label: 'over steps'},
  {value: 'calls', label: 'over calls'},
];

const FACT_NAMES: Readonly<Record<string, string>> = {mean: 'mean', std: 'std', low: 'min', high: 'max', bad: 'NaN and ∞'};

function Lines({info, step}: {info: KeptInfo; step: number}): JSX.Element {
  const {pick, over: chosen} = choices.tensors.value;
  const hasCalls = store.calls.value.length > 1;
  const over = hasCalls ? chosen : 'steps';
  const {size, batch} = store.shape.value;
  const isOne = product(size.filter((_, dim) => dim !== batch)) === 1 && (batch === null || choices.tensors.value.sample !== 'all');
  const followed = isOne ? size.map(() => 0) : pick;
  const index = followed !== null && followed.length === size.length ? followed.map((at, dim) => (dim === batch ? (store.positions.value[dim] as number) : at)) : null;
  const version = [store.record.value, store.steps.value.length];
  const line = useLine(shown.model.value?.name ?? null, {...store.wantedTensor(info, step), over, index: index?.join() ?? null}, version);
  return (
    <>
      <div class="tensor-bar">
        {hasCalls && <Segments label="Over" value={over} options={OVERS} onChoose={(to) => store.change({over: to as Over})} />}
        {!(isOne && batch === null) && <span>{index === null ? 'All elements' : `Element [${indexText(info, index, batch)}]`}</span>}
        {index === null && <span class="dim">Click an element to follow it.</span>}
        {index !== null && !isOne && (
          <button type="button" class="button" onClick={() => store.change({pick: null})}>
            All elements
          </button>
        )}
      </div>
      {line.problem !== null && (
        <p class="tensor-problem" role="status">
          {line.problem}
        </p>
      )}
      <div class="tensor-lines" aria-busy={!line.isCurrent}>
        {line.value === null && line.problem === null && <p class="tensor-loading dim">Loading …</p>}
        {line.value !== null &&
          [...line.value.columns.keys()]
            .filter((name) => name !== 'bad' || (line.value as TensorLine).columns.get('bad')?.some((one) => one > 0))
            .map((name) => <LineChart key={name} name={FACT_NAMES[name] ?? name} line={line.value as TensorLine} isGrowing={!line.isCurrent} column={name} over={over} info={info} step={step} />)}
      </div>
      {line.value !== null && line.value.skipped > 0 && <p class="dim">{line.value.skipped} steps are left out: the tensor is damaged or smaller there.</p>}
    </>
  );
}

function indexText({samples}: KeptInfo, index: readonly number[], batch: number | null): string {
  return index.map((at, dim) => (dim === batch ? `sample ${samples[at] ?? at}` : String(at))).join(', ');
}

interface ChartProps {
  name: string;
  line: TensorLine;
  /** What was recorded meanwhile is about to come. */
  isGrowing: boolean;
  column: string;
  over: Over;
  info: KeptInfo;
  step: number;
}

const BOX = {width: 280, height: 90};

function LineChart({name, line, isGrowing, column, over, info, step}: ChartProps): JSX.Element {
  const pointed = useSignal<number | null>(null);
  const values = line.columns.get(column) as Float64Array;
  const places = over === 'steps' ? line.step : line.call;
  const plot = linePlot(places, values, BOX, info.dtype === 'float64' ? undefined : levelOf(values));
  const placeName = (place: number): string => wholeNumber(over === 'steps' ? place : place + 1);
  const here = over === 'steps' ? step : (info.call ?? 0);
  const at = pointed.value ?? placeOf(places, here, isGrowing);
  const choose = (i: number): void => {
    if (over === 'steps') choices.step.value = places[i] as number;
    else store.openCall(places[i] as number);
  };
  const press = (event: KeyboardEvent): void => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    pointed.value = null;
    choose(Math.max(0, Math.min(places.length - 1, placeOf(places, here, isGrowing) + by)));
  };
  const isSingle = places.length === 1;
  const dots = places.length <= 60 || isSingle ? plot.dots : [];
  return (
    <figure class="tensor-line">
      <figcaption>
        {name} <b>{at >= 0 && at < values.length ? column === 'value' ? shortest(values[at] as number, info.dtype) : formatNumber(values[at] as number) : '–'}</b>
        <span class="dim"> at {over === 'steps' ? 'step' : 'call'} {at >= 0 ? placeName(places[at] as number) : '–'}</span>
      </figcaption>
      <svg
        viewBox={`-4 -4 ${BOX.width + 8} ${BOX.height + 8}`}
        role="slider"
        tabindex={0}
        aria-label={`${name} over ${over}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, places.length - 1)}
        aria-valuenow={Math.max(0, at)}
        aria-valuetext={at >= 0 && at < values.length ? `${formatNumber(values[at] as number)} at ${places[at]}` : 'none'}
        onKeyDown={press}
        onPointerMove={(event) => (pointed.value = nearest(plot.xs, pixelOf(event)))}
        onPointerLeave={() => (pointed.value = null)}
        onClick={(event) => {
          const under = nearest(plot.xs, pixelOf(event));
          if (under !== null) choose(under);
        }}
      >
        {plot.low < 0 && plot.high > 0 && <path class="zero" d={`M0 ${BOX.height * (1 + plot.low / (plot.high - plot.low))}H${BOX.width}`} />}
        {at >= 0 && plot.xs[at] !== undefined && <path class="here" d={`M${plot.xs[at]} 0V${BOX.height}`} />}
        <path class="line" d={plot.path} />
        {dots.map(([x, y]) => (
          <circle key={x} cx={x} cy={y} r="2" />
        ))}
        {plot.bad.map((x) => (
          <path key={x} class="bad" d={`M${x} 0V${BOX.height}`} />
        ))}
      </svg>
      <div class="tensor-line-ends dim">
        <span>{placeName(plot.first)}</span>
        <span>
          {formatRange(plot.low, plot.high)}
        </span>
        <span>{placeName(plot.last)}</span>
      </div>
    </figure>
  );
}

/** Where a step or call is in the line; while the line grows, its last place stands for what is beyond it. */
function placeOf(places: ArrayLike<number> & {indexOf: (one: number) => number}, here: number, isGrowing: boolean): number {
  const last = places.length - 1;
  return isGrowing && last >= 0 && here > (places[last] as number) ? last : places.indexOf(here);
}

function pixelOf(event: MouseEvent & {currentTarget: SVGSVGElement}): number {
  const box = event.currentTarget.getBoundingClientRect();
  return ((event.clientX - box.left) / box.width) * (BOX.width + 8) - 4;
}
