/** Which tensors were kept of the model on show, and which one is looked at. */

import {computed, effect, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {answers} from '../../api/client';
import {keepCurrent} from '../../api/current';
import {messageOf} from '../../api/errors';
import {NOTHING_KEPT} from '../../api/tensors';
import type {KeptInfo, KeptTensors, WantedTensor} from '../../api/tensors';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {defaultRoles, rolesFrom} from '../../tensors/axes';
import type {AxisRole} from '../../tensors/axes';
import {OWN_DEFAULTS} from '../../tensors/choice';
import type {OwnChoice, TensorChoice} from '../../tensors/choice';
import {callsOf, idOf, labelsOf, parseId, stepsOf, tensorsOf, variantIn} from '../../tensors/names';
import type {Kept, TensorId} from '../../tensors/names';

/** The latest answer, and in which epoch of the model it was asked for. */
const known: Signal<{model: string; epoch: number | null; kept: KeptTensors}> = signal({model: '', epoch: null, kept: NOTHING_KEPT});
export const keptProblem: Signal<string | null> = signal(null);

/** How often it is asked again while the run is written: the tensors of a step are written after its frame. */
const AGAIN_MS = 5000;

/** Asks what was kept whenever frames have come, and now and then. */
export function startFollowingKept(): void {
  const turn = signal(0);
  setInterval(() => document.hidden || shown.isOver.peek() || (turn.value += 1), AGAIN_MS);
  const want = keepCurrent<KeptTensors | null>((cause) => (keptProblem.value = `The kept tensors could not be listed: ${messageOf(cause)} Trying again.`));
  effect(() => {
    const [model, data] = [shown.model.value, shown.data.value];
    if (model === null || data === null) return want(null);
    const name = JSON.stringify(model.name);
    const held = known.peek();
    const version = held.model === name ? held.kept.version : '';
    want({
      key: JSON.stringify([name, data.epoch]),
      version: `${data.steps.length} ${data.finished !== null} ${turn.value}`,
      fetch: (abort) => answers.tensors(model.name, version, abort),
      show: (kept) => {
        keptProblem.value = null;
        const {epoch} = data;
        if (kept !== null) known.value = {model: name, epoch, kept};
        else if (known.peek().epoch !== epoch) known.value = {...known.peek(), epoch};
      },
    });
  });
}

/** What was kept of the model on show. */
export const kept: ReadonlySignal<KeptTensors> = computed(() => {
  const {model, kept} = known.value;
  return model === JSON.stringify(shown.model.value?.name ?? null) ? kept : NOTHING_KEPT;
});
/** Tells the record of the list from one that was written in its place: the poll knows of that before the list has come. */
export const record: ReadonlySignal<number | null> = computed(() => known.value.epoch);
/** An answer has come. */
export const isKnown: ReadonlySignal<boolean> = computed(() => known.value.model === JSON.stringify(shown.model.value?.name ?? null));
/** The tensors of it, by id. */
export const tensors: ReadonlySignal<Map<TensorId, Kept>> = computed(() => tensorsOf(kept.value));
export const hasKept: ReadonlySignal<boolean> = computed(() => kept.value.steps.length > 0);

/** The tensor on show; without a choice, the first output. */
export const current: ReadonlySignal<Kept | null> = computed(() => {
  const {id} = choices.tensors.value;
  if (id !== null) return tensors.value.get(id) ?? null;
  const all = [...tensors.value.values()];
  return all.find(({info}) => info.role === 'output') ?? all[0] ?? null;
});

/** Its values or a gradient: what was chosen if it was kept, else the values. */
export const info: ReadonlySignal<KeptInfo | null> = computed(() => current.value && variantIn(current.value, choices.tensors.value.kind));

export const labels: ReadonlySignal<string[]> = computed(() => labelsOf(kept.value));

/** The steps at which the tensor on show was kept, and, if a label is chosen, that have it. */
export const steps: ReadonlySignal<number[]> = computed(() => {
  const {label} = choices.tensors.value;
  const known = label !== null && labels.value.includes(label) ? label : null;
  return info.value === null ? [] : stepsOf(kept.value, info.value, known);
});

/** The step that is shown: the chosen one, or the last before it at which the tensor was kept, or the first. */
export const step: ReadonlySignal<number | null> = computed(() => stepNear(steps.value, choices.step.value));

export function stepNear(all: readonly number[], wanted: number | null): number | null {
  return (wanted === null ? all.at(-1) : all.findLast((one) => one <= wanted)) ?? all[0] ?? null;
}

/** A statistic of the neurons is shown, and not elements. */
export const statistic: ReadonlySignal<'mean' | 'std' | 'largest' | null> = computed(() => {
  const {sample} = choices.tensors.value;
  return info.value?.batch_dim == null || typeof sample === 'number' || sample === 'all' ? null : sample;
});

/** Shape of what is shown, and which of its dimensions has the samples. */
export const shape: ReadonlySignal<{size: number[]; batch: number | null}> = computed(() => {
  const one = info.value;
  if (one === null) return {size: [], batch: null};
  if (statistic.value === null) return {size: one.kept_shape, batch: one.batch_dim};
  return {size: one.kept_shape.filter((_, dim) => dim !== one.batch_dim), batch: null};
});

/** What each dimension is laid out along. */
export const roles: ReadonlySignal<AxisRole[]> = computed(() => {
  const {size, batch} = shape.value;
  const {axes, sample} = choices.tensors.value;
  return rolesFrom(axes, size.length) ?? defaultRoles(size, batch, sample === 'all');
});

/** The index along each dimension; along that of the samples, the chosen one. */
export const positions: ReadonlySignal<number[]> = computed(() => {
  const {size, batch} = shape.value;
  const {at, sample} = choices.tensors.value;
  return size.map((length, dim) => {
    const wanted = dim === batch ? (typeof sample === 'number' ? sample : 0) : (at[dim] ?? 0);
    return Math.max(0, Math.min(wanted, length - 1));
  });
});

export const calls: ReadonlySignal<number[]> = computed(() => (current.value === null ? [] : callsOf(kept.value, current.value.id, step.value)));

/** What is asked about a tensor at a step, apart from which part of it. */
export function wantedTensor(info: KeptInfo, step: number): WantedTensor {
  const {module, call, role, path, kind, loss} = info;
  const {part, rank} = choices.tensors.value;
  const more = {...(rank === null ? {} : {rank}), ...(loss === '' ? {} : {loss})};
  return {module, call, role, path, kind, step, what: statistic.value ?? 'values', part, ...more};
}

/** The samples that the latest answer has, at its step, and their categories. */
export const seen: Signal<{step: number; samples: number[]; categories: string[]} | null> = signal(null);

/** Names of the kept samples, in order. */
export const sampleNames: ReadonlySignal<string[]> = computed(() => {
  const one = info.value;
  if (one === null) return [];
  const known = seen.value;
  const {samples, categories} = known !== null && known.step === step.value && known.samples.length > 0 ? known : one;
  return samples.map((number, at) => categories[at] ? `number ${number}, category ${categories[at]}` : `number ${number}`);
});

const owns = new Map<TensorId, OwnChoice>();

export function change(choice: Partial<TensorChoice>): void {
  choices.tensors.value = {...choices.tensors.value, ...choice};
}

/** Shows another tensor. What was chosen for it alone is taken up again; what holds for all stays. */
export function open(id: TensorId): void {
  const before = choices.tensors.value;
  const left = before.id ?? current.value?.id;
  if (left === id) return change({id});
  if (left !== undefined) owns.set(left, ownOf(before));
  change({id, node: null, ...(owns.get(id) ?? OWN_DEFAULTS)});
}

function ownOf({axes, at, ranges, pick, page, filter}: TensorChoice): OwnChoice {
  return {axes, at, ranges, pick, page, filter};
}

/** The tensors that share a node with one, if it has a node of its own name; else those of its call and its module. */
export function together({info}: Kept): Kept[] {
  const {module, call, node} = info;
  const isNear = (one: KeptInfo): boolean => one.call === call || one.call === null || call === null;
  return [...tensors.value.values()].filter(({info: one}) => isNear(one) && (node === '' ? one.module === module : one.node === node));
}

/** The page of tensors, with this one. */
export function openTensor(id: TensorId): void {
  open(id);
  choices.view.value = 'tensors';
}

/** Another call of the module: the same tensor of it, with the same look. */
export function openCall(call: number): void {
  const one = current.value;
  const key = one && parseId(one.id);
  if (key === null) return;
  const id = idOf({...key, call});
  owns.set(id, ownOf(choices.tensors.value));
  open(id);
  change({call});
}

/** A tensor whose call is chosen with it, if there are several. */
export function openOfItsCall(id: TensorId): void {
  open(id);
  const call = parseId(id)?.call ?? null;
  if (callsOf(kept.value, id).length > 1) change({call});
}

/** A tensor of the list, which has the first calls: of the call that was chosen, if the step has it. */
export function openListed(id: TensorId): void {
  const {call} = choices.tensors.value;
  const key = parseId(id);
  open(key !== null && call !== null && callsOf(kept.value, id, step.value).includes(call) ? idOf({...key, call}) : id);
}

/** The kept step `by` steps from the one on show. The last one is followed from then on. */
export function stepBy(by: number): void {
  const all = steps.value;
  const at = step.value === null ? -1 : all.indexOf(step.value);
  if (at < 0) return;
  const next = Math.max(0, Math.min(all.length - 1, at + by));
  choices.step.value = next === all.length - 1 && by > 0 && choices.step.value === null ? null : (all[next] ?? null);
}

/** The one `by` places from another in a list, which goes round. */
export function beyond<T>(all: readonly T[], one: T, by: number): T | null {
  if (all.length === 0) return null;
  return all[(Math.max(0, all.indexOf(one)) + by + all.length) % all.length] as T;
}
