/** One tensor at one step, and what is beside it. */

import type {ComponentChildren, JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import {page} from '../../api/client';
import type {ModelName} from '../../api/answers';
import type {KeptInfo, KeptTensors, TensorPart, WantedPart} from '../../api/tensors';
import {formatNumber, stepName} from '../../numberText';
import {windowSize} from '../layout/sides';
import {useSize} from '../useSize';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import type {Box} from '../../tensors/grid';
import {ValueLegend} from './Legend';
import {lookOf} from '../../tensors/look';
import {fullName, stepsOf} from '../../tensors/names';
import type {Kept} from '../../tensors/names';
import {CategoriesOverTime} from './CategoriesOverTime';
import {NeuronTable} from './NeuronTable';
import {useKept, usePart} from './parts';
import type {Answer} from './parts';
import {pickedIndex, Picture} from './Picture';
import {MOST_FACETS, partAsked, product, rangesAround, viewOf} from '../../tensors/request';
import {Scatter} from './Scatter';
import {LabelChoice, Manner, Subject} from './Selectors';
import {bothBounds, byCategory, differenceOf, summaryOf} from '../../tensors/shade';
import * as store from './store';
import {TimeLine} from './TimeLine';

export function ValuePanel(): JSX.Element {
  const [kept, info, step] = [store.current.value, store.info.value, store.step.value];
  if (kept === null || info === null) return <NotKept />;
  if (step === null) return <NotAtLabel />;
  const isEmpty = product(info.kept_shape) === 0;
  return (
    <div class="tensor-view">
      <Subject kept={kept} info={info} />
      <Manner info={info} />
      <Pictures kept={kept} info={info} step={step} />
      <Categories info={info} step={step} />
      {!isEmpty && (
        <>
          <CategoriesOverTime info={info} step={step} />
          <TimeLine info={info} step={step} />
          <NeuronTable kept={kept} info={info} step={step} />
          <Scatter kept={kept} info={info} step={step} />
        </>
      )}
    </div>
  );
}

/** A tensor that no step with the chosen label has. */
function NotAtLabel(): JSX.Element {
  return (
    <div class="tensor-view">
      <div class="tensor-bar" role="toolbar" aria-label="What is looked at">
        <LabelChoice />
      </div>
      <p class="tensor-note">This tensor was not kept at a step with this label. Choose another label, or another tensor of the list.</p>
    </div>
  );
}

function NoneOnPage(): JSX.Element {
  return (
    <div class="tensor-note">
      <p>
        <b>This page has no kept tensors.</b> To have on it what the run kept, export it again:
      </p>
      <pre>torchgraph export RUN --tensors</pre>
    </div>
  );
}

function NotKept(): JSX.Element {
  const {id} = choices.tensors.value;
  if (!store.isKnown.value) return <p class="tensor-empty">Loading …</p>;
  if (!store.hasKept.value) {
    if (store.kept.value.note) return <p class="tensor-note">None of the kept tensors fits into this page.</p>;
    if (page !== null) return <NoneOnPage />;
    return (
      <div class="tensor-note">
        <p>
          <b>No tensor of this model was kept whole.</b> Pass <code>keep=</code> to <code>watch</code>, with the names of what to keep:
        </p>
        <pre>watch(model, keep=Keep("encoder", "*.weight"))</pre>
      </div>
    );
  }
  return <p class="tensor-note">{id === null ? 'Choose a tensor.' : 'This tensor was not kept in this run. Choose one of the list.'}</p>;
}

/** Of a tensor with one number for each sample, as a loss, the mean of each category among the kept samples. */
function Categories({info, step}: {info: KeptInfo; step: number}): JSX.Element | null {
  const isNumber = info.batch_dim !== null && info.categories.length > 0 && product(info.kept_shape) === info.samples.length;
  const wanted = isNumber ? {...store.wantedTensor(info, step), what: 'values' as const, at: '', shrink: []} : null;
  const part = usePart(shown.model.value?.name ?? null, wanted, store.record.value).value;
  if (!isNumber || part === null || part.categories.length !== part.values.length) return null;
  return (
    <table class="tensor-table tensor-categories">
      <caption class="sr-only">By category</caption>
      <thead>
        <tr>
          <th scope="col">category</th>
          <th scope="col">samples</th>
          <th scope="col">mean</th>
        </tr>
      </thead>
      <tbody>
        {byCategory(part.values, part.categories).map(({category, count, mean}) => (
          <tr key={category}>
            <th scope="row">{category}</th>
            <td>{count}</td>
            <td>{mean === null ? '–' : formatNumber(mean)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PicturesProps {
  kept: Kept;
  info: KeptInfo;
  step: number;
}

const GAP = 16;

function Pictures({kept, info, step}: PicturesProps): JSX.Element {
  const [ref, {width}] = useSize();
  const {beside, sample, ranges, page} = choices.tensors.value;
  const {size, batch} = store.shape.value;
  const [roles, positions] = [store.roles.value, store.positions.value];
  const model = shown.model.value?.name ?? null;
  const version = store.record.value;
  const asked = (at: readonly number[]): WantedPart => ({...store.wantedTensor(info, step), ...partAsked({size, roles, positions: at, ranges, page, isSingle: beside !== null})});
  const first = usePart(model, asked(positions), version);
  useEffect(() => {
    if (first.value !== null) store.seen.value = {step: first.value.step, samples: first.value.samples, categories: first.value.categories};
  }, [first.value]);
  const otherRun = model !== null && beside !== null && 'run' in beside ? {...model, run: beside.run} : null;
  const keptThere = useKept(otherRun);
  const stepThere = stepOf(keptThere, info, step);
  const other = besideAsked({beside, batch, positions, asked, model, step, stepThere});
  const second = usePart(other?.model ?? null, other?.wanted ?? null, otherRun === null ? version : keptThere.value?.version);
  const [left, right] = other === null ? [first, second] : onOneScale(first, second);
  const panes = [
    pane(beside === null ? '' : paneTitle(info, step, sample), left, positions),
    ...(other === null ? [] : [pane(other.title, right, other.positions)]),
    ...differencePane(first, second, beside === null ? null : positions),
  ];
  const isWide = width >= 640 || panes.length === 1;
  const paneWidth = isWide ? (width - GAP * (panes.length - 1)) / panes.length : width;
  const box: Box = {width: Math.max(80, Math.floor(paneWidth)), height: Math.max(120, Math.min(460, 0.5 * windowSize.value.height))};
  return (
    <div class="tensor-panes" ref={ref} data-stacked={!isWide || undefined}>
      {width > 0 &&
        panes.map(({title, answer, at}) => (
          <Pane key={title} title={title} answer={answer}>
            {answer.value !== null && <OnePicture {...{kept, info, step, box, title}} part={answer.value} positions={at} />}
          </Pane>
        ))}
    </div>
  );
}

interface PaneFacts {
  title: string;
  answer: Answer<TensorPart>;
  at: readonly number[];
}

function pane(title: string, answer: Answer<TensorPart>, at: readonly number[]): PaneFacts {
  return {title, answer, at};
}

function paneTitle(info: KeptInfo, step: number, sample: unknown): string {
  return typeof sample === 'number' && info.batch_dim !== null ? `${stepName(step)}, sample ${info.samples[Math.min(sample, info.samples.length - 1)] ?? sample}` : stepName(step);
}

/** The step of another run that is beside `step`: the last one until then at which it has the tensor. Null until that is known. */
function stepOf({value, problem}: Pick<Answer<KeptTensors>, 'value' | 'problem'>, info: KeptInfo, step: number): number | null {
  if (value === null && problem === null) return null;
  return (value && store.stepNear(stepsOf(value, info), step)) ?? step; // where it was never kept, the answer says so
}

interface BesideFacts {
  model: ModelName | null;
  wanted: WantedPart | null;
  title: string;
  positions: readonly number[];
}

interface BesideProps {
  beside: (typeof choices.tensors.value)['beside'];
  batch: number | null;
  positions: readonly number[];
  asked: (positions: readonly number[]) => WantedPart;
  model: ModelName | null;
  step: number;
  /** That of the other run; null until it is known. */
  stepThere: number | null;
}

function besideAsked({beside, batch, positions, asked, model, step, stepThere}: BesideProps): BesideFacts | null {
  if (beside === null) return null;
  if ('run' in beside) {
    const wanted = stepThere === null ? null : {...asked(positions), step: stepThere};
    const title = `run ${beside.run}${stepThere === null || stepThere === step ? '' : `, ${stepName(stepThere)}`}`;
    return {model: model && {...model, run: beside.run}, wanted, title, positions};
  }
  if ('step' in beside) return {model, wanted: {...asked(positions), step: beside.step}, title: stepName(beside.step), positions};
  const at = positions.map((one, dim) => (dim === batch ? beside.sample : one));
  const number = store.info.value?.samples[beside.sample];
  return {model, wanted: asked(at), title: `sample ${number ?? beside.sample}`, positions: at};
}

/** Both with the scale of the larger one, so that their colours mean the same. */
function onOneScale(first: Answer<TensorPart>, second: Answer<TensorPart>): [Answer<TensorPart>, Answer<TensorPart>] {
  const [a, b] = [first.value, second.value];
  if (a === null || b === null) return [first, second];
  const both = bothBounds(a.summary, b.summary);
  return [
    {...first, value: {...a, bounds: both}},
    {...second, value: {...b, bounds: both}},
  ];
}

/** The first without the second, if they have the same size. */
function differencePane(first: Answer<TensorPart>, second: Answer<TensorPart>, positions: readonly number[] | null): PaneFacts[] {
  const [a, b] = [first.value, second.value];
  if (positions === null || a === null || b === null) return [];
  const title = 'difference';
  const isSame = a.size.join() === b.size.join() && a.factors.join() === b.factors.join();
  if (!isSame) return [pane(title, {value: null, isCurrent: true, problem: `They differ in shape: [${a.kept_shape.join(', ')}] and [${b.kept_shape.join(', ')}].`}, positions)];
  const values = differenceOf(a.values, b.values);
  const dtype = /^(bool|u?int)/.test(a.dtype) ? 'float64' : a.dtype;
  const merged = a.merged && b.merged && {...a.merged, low: Float32Array.from(values), high: Float32Array.from(values), bad: a.merged.bad.map((one, i) => one + (b.merged?.bad[i] ?? 0))};
  return [pane(title, {value: {...a, dtype, isMagnitude: false, values, merged, summary: summaryOf(values), bounds: null}, isCurrent: first.isCurrent && second.isCurrent, problem: null}, positions)];
}

function Pane({title, answer: {problem, isCurrent, value}, children}: {title: string; answer: Answer<TensorPart>; children: ComponentChildren}): JSX.Element {
  return (
    <figure class="tensor-pane" aria-busy={!isCurrent} data-late={(!isCurrent && value !== null) || undefined}>
      {title !== '' && <figcaption>{title}</figcaption>}
      {problem !== null && (
        <p class="tensor-problem" role="status">
          {problem}
        </p>
      )}
      {children}
    </figure>
  );
}

interface OnePictureProps extends PicturesProps {
  part: TensorPart;
  positions: readonly number[];
  box: Box;
  title: string;
}

function OnePicture({kept, info, step, part, positions, box, title}: OnePictureProps): JSX.Element | null {
  const {look: chosen, scale, pick, page} = choices.tensors.value;
  const {size} = store.shape.value;
  const shape = size.length === part.kept_shape.length ? part.kept_shape : size;
  const view = viewOf(part, {size: shape, roles: store.roles.value, positions, page});
  if (view === null) return null; // an answer for another tensor, whose successor is on its way
  const isDifference = title === 'difference';
  const look = isDifference && !['bars', 'number', 'empty'].includes(lookOf(view, chosen, info)) ? 'heat' : lookOf(view, chosen, info);
  const name = `${fullName(shown.graph.value, kept.info, store.calls.value.length > 1)} at ${stepName(step)}${title === '' ? '' : `, ${title}`}`;
  const choose = (entry: number): void => {
    const isMerged = part.factors.some((factor) => factor > 1);
    store.change(isMerged ? {ranges: rangesAround(part, entry, part.kept_shape), pick: null} : {pick: pickedIndex(part, entry)});
  };
  return (
    <>
      <Picture view={view} look={look} scale={scale} box={box} name={name} pick={withSample(pick, part, positions)} onPick={choose} />
      <Pages all={view.allFacets} page={page} />
      <ValueLegend view={view} look={look} scale={scale} />
    </>
  );
}

/** The element that was picked, in the sample that is shown here. */
function withSample(pick: readonly number[] | null, part: TensorPart, positions: readonly number[]): readonly number[] | null {
  const batch = part.batch_dim;
  if (pick === null || batch === null || store.roles.value[batch] !== 'slider') return pick;
  return pick.map((at, dim) => (dim === batch ? (positions[dim] as number) : at));
}

function Pages({all, page}: {all: number; page: number}): JSX.Element | null {
  if (all <= MOST_FACETS) return null;
  const last = Math.ceil(all / MOST_FACETS) - 1;
  return (
    <div class="tensor-pages" role="group" aria-label="Facets">
      <button type="button" class="button" disabled={page === 0} onClick={() => store.change({page: page - 1})}>
        Previous
      </button>
      <span>
        facets {page * MOST_FACETS} to {Math.min(all, (page + 1) * MOST_FACETS) - 1} of {all}
      </span>
      <button type="button" class="button" disabled={page >= last} onClick={() => store.change({page: page + 1})}>
        Next
      </button>
    </div>
  );
}
