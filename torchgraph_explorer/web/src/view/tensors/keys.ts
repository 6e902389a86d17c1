/** Keys of the page of tensors. */

import * as choices from '../state/choices';
import {variantOf} from '../../tensors/names';
import {fitGraph} from './Dependencies';
import * as store from './store';
import {openBeside} from './TensorList';
import {chooseSample} from './Selectors';

const ACTIONS: Readonly<Record<string, () => void>> = {
  ',': () => store.stepBy(-1),
  '.': () => store.stepBy(1),
  j: () => openBeside(1),
  k: () => openBeside(-1),
  '[': () => sampleBy(-1),
  ']': () => sampleBy(1),
  ';': () => callBy(-1),
  "'": () => callBy(1),
  '(': () => labelBy(-1),
  ')': () => labelBy(1),
  f: () => choices.tensors.value.isGraph && fitGraph(),
  g: nextKind,
  r: () => tensorOfModuleBy(1),
  R: () => tensorOfModuleBy(-1),
};

/** True if the key has a meaning here. */
export function tensorKeys(event: KeyboardEvent): boolean {
  const action = ACTIONS[event.key];
  if (action === undefined || !(choices.view.value === 'tensors' || choices.view.value === 'own')) return false;
  event.preventDefault();
  action();
  return true;
}

function sampleBy(by: number): void {
  const info = store.info.value;
  const {sample} = choices.tensors.value;
  if (info === null || info.batch_dim === null) return;
  const all = [...info.samples.keys(), 'all', 'mean', 'std', 'largest'].map(String);
  const next = store.beyond(all, String(sample), by);
  if (next !== null) chooseSample(next);
}

function callBy(by: number): void {
  const {calls, current} = store;
  const call = current.value?.info.call ?? null;
  const next = call === null ? undefined : calls.value[calls.value.indexOf(call) + by];
  if (next !== undefined) store.openCall(next);
}

function labelBy(by: number): void {
  const all = [null, ...store.labels.value];
  store.change({label: store.beyond(all, choices.tensors.value.label, by)});
}

function nextKind(): void {
  const {current, info} = store;
  const all = (current.value?.variants ?? []).map(variantOf);
  const next = info.value && store.beyond(all, variantOf(info.value), 1);
  if (next !== null) store.change({kind: next});
}

function tensorOfModuleBy(by: number): void {
  const current = store.current.value;
  if (current === null) return;
  const same = store.together(current);
  const next = store.beyond(same.map(({id}) => id), current.id, by);
  if (next !== null) store.open(next);
}
