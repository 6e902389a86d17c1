/** Which tensor, of which step, call and sample; and how it is shown. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import {stepName, wholeNumber} from '../../numberText';
import type {ComplexPart, KeptInfo} from '../../api/tensors';
import {Segments, Select} from '../controls/Select';
import type {Option} from '../controls/Select';
import * as choices from '../state/choices';
import * as server from '../state/runs';
import * as shown from '../state/shown';
import {AXIS_ROLES, rolesText} from '../../tensors/axes';
import type {AxisRole} from '../../tensors/axes';
import type {Beside, Look, Sample} from '../../tensors/choice';
import {Stepper} from './Controls';
import {idOf, roleName, variantName, variantOf} from '../../tensors/names';
import type {Kept} from '../../tensors/names';
import type {ScaleChoice} from '../../tensors/shade';
import * as store from './store';

/** What is looked at. */
export function Subject({kept, info}: {kept: Kept; info: KeptInfo}): JSX.Element {
  return (
    <div class="tensor-bar" role="toolbar" aria-label="What is looked at">
      <TensorOfModule kept={kept} />
      <KindChoice kept={kept} info={info} />
      <LabelChoice />
      <StepChoice />
      <StepFacts />
      <CallChoice />
      <SampleChoice info={info} />
      <RankChoice />
      <PartChoice info={info} />
    </div>
  );
}

function TensorOfModule({kept}: {kept: Kept}): JSX.Element | null {
  const graph = shown.graph.value;
  const same = store.together(kept);
  const unique = same.filter((one, i) => same.findIndex(({info}) => info.role === one.info.role && info.path === one.info.path) === i);
  if (unique.length < 2) return null;
  const options = unique.map(({id, info}) => ({value: id, label: roleName(graph, info)}));
  return <Stepper label="Tensor" value={kept.id} options={options} onChoose={store.open} keys={['R', 'r']} />;
}

const MOST_SEGMENTS = 3;

function KindChoice({kept: {variants}, info}: {kept: Kept; info: KeptInfo}): JSX.Element | null {
  if (variants.length < 2) return null;
  const options: Option[] = variants.map((one) => ({value: variantOf(one), label: variantName(one)}));
  const shared = {label: 'Value or gradient (g)', value: variantOf(info), options, onChoose: (kind: string) => store.change({kind})};
  return variants.length > MOST_SEGMENTS ? <Select {...shared} isBare /> : <Segments {...shared} />;
}

/** The kinds of steps that the training loop named. */
export function LabelChoice(): JSX.Element | null {
  const labels = store.labels.value;
  if (labels.length === 0) return null;
  const options = [{value: '', label: 'all steps'}, ...labels.map((label) => ({value: `=${label}`, label}))];
  const {label} = choices.tensors.value;
  const value = label !== null && labels.includes(label) ? `=${label}` : '';
  return <Stepper label="Label" value={value} options={options} onChoose={(text) => store.change({label: text === '' ? null : text.slice(1)})} keys={['(', ')']} />;
}

/** The tensors of a step are written after its frame: in a growing run, each new step has none for a moment. */
const LASTING_MS = 1500;

/** Whether something has been so for a while. */
function useLasting(isSo: boolean): boolean {
  const lasts = useSignal(false);
  useEffect(() => {
    lasts.value = false;
    const timer = isSo ? setTimeout(() => (lasts.value = true), LASTING_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isSo]);
  return isSo && lasts.value;
}

/** The label of the step on show, why it was kept, and that it is not the step that was chosen. */
function StepFacts(): JSX.Element | null {
  const {steps, labels, reasons} = store.kept.value;
  const step = store.step.value;
  const label = step === null ? null : labels[steps.indexOf(step)];
  const chosen = shown.step.value;
  const isEarlier = step !== null && chosen !== null && step < chosen;
  const isFollowing = choices.step.value === null && !shown.isOver.value;
  const lasts = useLasting(isEarlier);
  const isSaid = isEarlier && (lasts || !isFollowing);
  const texts = [isSaid ? `the last one before ${stepName(chosen)}` : '', label ? `label ${label}` : '', ...(step === null ? [] : (reasons[step] ?? []))].filter(Boolean);
  return texts.length === 0 ? null : <span class="tensor-reasons">{texts.join(' · ')}</span>;
}

function StepChoice(): JSX.Element {
  const [steps, step] = [store.steps.value, store.step.value];
  const options = steps.map((one) => ({value: String(one), label: wholeNumber(one)}));
  const choose = (text: string): void => void (choices.step.value = Number(text));
  return <Stepper label="Step" value={String(step)} options={options} onChoose={choose} keys={[',', '.']} onStep={store.stepBy} />;
}

function CallChoice(): JSX.Element | null {
  const calls = store.calls.value;
  if (calls.length < 2) return null;
  const options = calls.map((call) => ({value: String(call), label: `${call + 1} of ${calls.length}`}));
  return <Stepper label="Call" value={String(store.current.value?.info.call)} options={options} onChoose={(call) => store.openCall(Number(call))} keys={[';', "'"]} />;
}

const STATISTIC_OPTIONS: readonly Option[] = [
  {value: 'all', label: 'all that were kept'},
  {value: 'mean', label: 'mean of the batch'},
  {value: 'std', label: 'std of the batch'},
  {value: 'largest', label: 'largest of the batch'},
];

function SampleChoice({info}: {info: KeptInfo}): JSX.Element | null {
  if (info.batch_dim === null) return null;
  const {sample} = choices.tensors.value;
  const options = [...store.sampleNames.value.map((label, at) => ({value: String(at), label})), ...STATISTIC_OPTIONS];
  const value = typeof sample === 'number' ? String(Math.min(sample, info.samples.length - 1)) : sample;
  return <Stepper label="Sample" value={value} options={options} onChoose={chooseSample} keys={['[', ']']} />;
}

export function chooseSample(text: string): void {
  const number = Number(text);
  const sample = Number.isInteger(number) ? number : (text as Sample);
  const before = choices.tensors.value.sample;
  // Statistics have no samples, and one sample needs no place for others: each has dimensions, or roles, of its own.
  const isOther = typeof before !== typeof sample || typeof sample === 'string';
  store.change({sample, ...(isOther ? {axes: null, pick: null, ranges: null, page: 0} : {})});
}

function RankChoice(): JSX.Element | null {
  const {ranks} = store.kept.value;
  if (ranks.length < 2) return null;
  const options = ranks.map((rank) => ({value: String(rank), label: `rank ${rank}`}));
  return <Select label="Rank" value={String(choices.tensors.value.rank ?? ranks[0])} options={options} onChoose={(rank) => store.change({rank: Number(rank)})} />;
}

const COMPLEX_PARTS: readonly Option[] = [
  {value: 'abs', label: 'magnitude'},
  {value: 'real', label: 'real part'},
  {value: 'imag', label: 'imaginary part'},
  {value: 'angle', label: 'angle'},
];

function PartChoice({info}: {info: KeptInfo}): JSX.Element | null {
  if (!info.dtype.startsWith('complex')) return null;
  return <Select label="Part" value={choices.tensors.value.part} options={COMPLEX_PARTS} onChoose={(part) => store.change({part: part as ComplexPart})} />;
}

const LOOK_OPTIONS: readonly Option[] = [
  {value: 'auto', label: 'automatic'},
  {value: 'heat', label: 'heat map'},
  {value: 'bars', label: 'bars'},
  {value: 'grey', label: 'grey image'},
  {value: 'rgb', label: 'colour image'},
];

const SCALE_OPTIONS: readonly Option[] = [
  {value: 'all', label: 'one for all'},
  {value: 'typical', label: 'one for 99 %'},
  {value: 'facet', label: 'one per facet'},
];

/** How it is shown. */
export function Manner({info}: {info: KeptInfo}): JSX.Element {
  const {look, scale, beside, ranges} = choices.tensors.value;
  // Matters in a narrow window alone, where the choices would take several lines.
  const isOpen = useSignal(false);
  return (
    <>
      <button type="button" class="button tensor-manner-button" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <span class="fold" aria-hidden="true" />
        How it is shown
      </button>
      <div class={`tensor-bar tensor-manner${isOpen.value ? ' is-open' : ''}`} role="toolbar" aria-label="How it is shown">
        <AxesChoice />
        <Select label="As" value={look} options={LOOK_OPTIONS} onChoose={(text) => store.change({look: text as Look})} />
        <Select label="Scale" value={scale} options={SCALE_OPTIONS} onChoose={(text) => store.change({scale: text as ScaleChoice})} />
        <Select label="Beside it" value={besideValue(beside)} options={besideOptions(info)} onChoose={(text) => store.change({beside: besideOf(text)})} />
        {ranges !== null && (
          <button type="button" class="button" onClick={() => store.change({ranges: null})}>
            Whole tensor
          </button>
        )}
      </div>
    </>
  );
}

const ROLE_NAMES: Readonly<Record<AxisRole, string>> = {row: 'rows', column: 'columns', facet: 'facets', slider: 'slider'};

/** Which axis each dimension is laid along, with the sliders of those that are. */
function AxesChoice(): JSX.Element | null {
  const {size, batch} = store.shape.value;
  const roles = store.roles.value;
  if (size.length < 2) return null;
  return (
    <div class="tensor-axes" role="group" aria-label="Dimensions">
      {size.map((length, dim) => (
        <Dimension key={dim} dim={dim} length={length} role={roles[dim] as AxisRole} isBatch={dim === batch} />
      ))}
    </div>
  );
}

interface DimensionProps {
  dim: number;
  length: number;
  role: AxisRole;
  isBatch: boolean;
}

function Dimension({dim, length, role, isBatch}: DimensionProps): JSX.Element {
  const position = store.positions.value[dim] ?? 0;
  const name = isBatch ? 'samples' : `dim ${dim}`;
  const options = AXIS_ROLES.map((one) => ({value: one, label: ROLE_NAMES[one]}));
  return (
    <span class="tensor-axis">
      <Select label={`${name} (${length})`} value={role} options={options} onChoose={(to) => chooseRole(dim, to as AxisRole, isBatch)} />
      {role === 'slider' && !isBatch && length > 1 && (
        <label>
          <input
            type="range"
            aria-label={`Index along ${name}`}
            min={0}
            max={length - 1}
            value={position}
            onInput={({currentTarget}) => choosePosition(dim, Number(currentTarget.value))}
          />
          {position}
        </label>
      )}
    </span>
  );
}

function chooseRole(dim: number, role: AxisRole, isBatch: boolean): void {
  const roles = store.roles.value.map((one, i) => (i === dim ? role : one));
  const sample = isBatch ? {sample: role === 'slider' ? 0 : ('all' as const)} : {};
  store.change({axes: rolesText(roles), page: 0, ...sample});
}

function choosePosition(dim: number, position: number): void {
  const at = store.positions.value.map((one, i) => (i === dim ? position : one));
  store.change({at});
}

function besideValue(beside: Beside | null): string {
  return beside === null ? '' : JSON.stringify(beside);
}

function besideOf(text: string): Beside | null {
  return text === '' ? null : (JSON.parse(text) as Beside);
}

function besideOptions(info: KeptInfo): Option[] {
  const {sample} = choices.tensors.value;
  const steps = store.steps.value.filter((one) => one !== store.step.value);
  const samples = typeof sample === 'number' ? [...info.samples.keys()].filter((one) => one !== sample) : [];
  const runs = (server.runs.value ?? []).filter(({run, models}) => run !== choices.run.value && models.includes(choices.model.value ?? ''));
  const option = (beside: Beside, label: string): Option => ({value: JSON.stringify(beside), label});
  const {beside} = choices.tensors.value;
  const gone = beside !== null && 'step' in beside && !steps.includes(beside.step) ? [beside.step] : []; // of another label, or not kept
  return [
    {value: '', label: 'nothing'},
    ...[...gone, ...steps].map((step) => option({step}, stepName(step))),
    ...samples.map((at) => option({sample: at}, `sample ${store.sampleNames.value[at] ?? at}`)),
    ...runs.map(({run}) => option({run}, `run ${run}`)),
  ];
}

/** The id of the tensor of the list that is on show: that of the first call. */
export function listedId(kept: Kept): string {
  const first = store.calls.value[0];
  return first === undefined ? kept.id : idOf({...kept.info, call: first});
}
