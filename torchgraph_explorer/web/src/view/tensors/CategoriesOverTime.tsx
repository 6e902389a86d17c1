/** The samples of each category over the kept steps: the mean, and how far samples of one category differ. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import type {KeptInfo, TensorLine} from '../../api/tensors';
import {runColour, runDashes} from '../../comparison/choice';
import {formatNumber, formatRange, stepName, wholeNumber} from '../../numberText';
import {categoryPlot, MOST_LINES} from '../../tensors/categoryLines';
import type {CategoryLine} from '../../tensors/categoryLines';
import {nearest} from '../../tensors/linePlot';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Fold} from './Controls';
import {useLine} from './parts';
import {isOpen, toggle} from './sections';
import * as store from './store';

export function CategoriesOverTime({info, step}: {info: KeptInfo; step: number}): JSX.Element | null {
  if (info.categories.length === 0 || store.steps.value.length < 2) return null;
  return (
    <Fold title="By category over time" isOpen={isOpen('categories')} onToggle={() => toggle('categories')}>
      <Charts info={info} step={step} />
    </Fold>
  );
}

function Charts({info, step}: {info: KeptInfo; step: number}): JSX.Element {
  const version = [store.record.value, store.steps.value.length];
  const wanted = {...store.wantedTensor(info, step), what: 'values' as const, over: 'steps' as const, index: null, by: 'category' as const};
  const {value: line, problem, isCurrent} = useLine(shown.model.value?.name ?? null, wanted, version);
  const isNumber = info.kept_shape.reduce((count, size) => count * size, 1) === info.samples.length;
  return (
    <>
      <p class="dim">
        {isNumber ? 'The kept samples of each category' : 'The mean of each kept sample, by category'}. A category has values at the steps where a sample of it was kept.
      </p>
      {problem !== null && (
        <p class="tensor-problem" role="status">
          {problem}
        </p>
      )}
      <div class="tensor-lines" aria-busy={!isCurrent}>
        {line === null && problem === null && <p class="tensor-loading dim">Loading …</p>}
        {line !== null && <Chart name="mean" column="mean" line={line} step={step} />}
        {line !== null && <Chart name="std between samples" column="std" line={line} step={step} />}
      </div>
    </>
  );
}

const BOX = {width: 360, height: 140};

function Chart({name, column, line, step}: {name: string; column: string; line: TensorLine; step: number}): JSX.Element {
  const {lines, others, low, high, first, last, bad} = categoryPlot(line, column, BOX);
  const pointed = useSignal<number | null>(null);
  if (column === 'std' && lines.every(({plot}) => plot.dots.length === 0) && bad.length === 0) {
    return <p class="dim">No step has two kept samples of the same category, so there is no std.</p>;
  }
  const at = pointed.value ?? step;
  const steps = [...new Set(line.step)].sort((a, b) => a - b);
  const xs = steps.map((one) => (last > first ? ((one - first) / (last - first)) * BOX.width : BOX.width / 2));
  const here = xs[steps.indexOf(at)];
  const stepUnder = (event: MouseEvent & {currentTarget: SVGSVGElement}): number | null => {
    const place = event.currentTarget.getBoundingClientRect();
    const found = nearest(xs, ((event.clientX - place.left) / place.width) * (BOX.width + 8) - 4);
    return found === null ? null : (steps[found] as number);
  };
  const press = (event: KeyboardEvent): void => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    pointed.value = null;
    choices.step.value = steps[Math.max(0, Math.min(steps.length - 1, steps.indexOf(step) + by))] ?? step;
  };
  return (
    <figure class="tensor-line tensor-category-lines">
      <figcaption>
        {name} <span class="dim">at {stepName(at)}</span>
      </figcaption>
      <svg
        viewBox={`-4 -4 ${BOX.width + 8} ${BOX.height + 8}`}
        role="slider"
        tabindex={0}
        aria-label={`${name} of each category over steps`}
        aria-valuemin={first}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={`${stepName(at)}: ${lines.map((one) => `${one.category} ${valueText(one, at)}`).join(', ')}`}
        onKeyDown={press}
        onPointerMove={(event) => (pointed.value = stepUnder(event))}
        onPointerLeave={() => (pointed.value = null)}
        onClick={(event) => {
          const under = stepUnder(event);
          if (under !== null) choices.step.value = under;
        }}
      >
        {here !== undefined && <path class="here" d={`M${here} 0V${BOX.height}`} />}
        {lines.map(({category, plot}, i) => (
          <g key={category} style={{color: runColour(i)}}>
            <path class="line" style={{stroke: runColour(i)}} stroke-dasharray={runDashes(i).join(' ') || undefined} d={plot.path} />
            {plot.dots.length <= 60 && plot.dots.map(([x, y]) => <circle key={x} cx={x} cy={y} r="2" style={{fill: runColour(i)}} />)}
          </g>
        ))}
        {bad.map((x) => (
          <path key={x} class="bad" d={`M${x} 0V${BOX.height}`} />
        ))}
      </svg>
      <div class="tensor-line-ends dim">
        <span>{wholeNumber(first)}</span>
        <span>
          {formatRange(low, high)}
        </span>
        <span>{wholeNumber(last)}</span>
      </div>
      <ul class="tensor-category-legend">
        {lines.map((one, i) => (
          <li key={one.category}>
            <svg width="18" height="8" aria-hidden="true">
              <path d="M0 4H18" style={{stroke: runColour(i)}} stroke-width="2" stroke-dasharray={runDashes(i).join(' ') || undefined} />
            </svg>
            {one.category} <b>{valueText(one, at)}</b>
          </li>
        ))}
        {others > 0 && (
          <li class="dim">
            {others} more; the {MOST_LINES} with the largest latest mean are drawn
          </li>
        )}
      </ul>
    </figure>
  );
}

function valueText({steps, values}: CategoryLine, step: number): string {
  const at = steps.indexOf(step);
  return at < 0 || Number.isNaN(values[at]) ? '–' : formatNumber(values[at] as number);
}
