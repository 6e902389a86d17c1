/** How kept tensors are named and grouped. Pure. */

import {group} from 'd3-array';
import type {KeptInfo, KeptTensors, TensorKey} from '../api/tensors';
import {tensorNameOf} from '../graph/labels';
import type {ModuleGraph} from '../api/types';

/** A tensor without its kind: its value and its gradients have one place. It stays the same across runs. */
export type TensorId = string;

export function idOf({module, call, role, path}: Pick<TensorKey, 'module' | 'call' | 'role' | 'path'>): TensorId {
  return JSON.stringify([module, call, role, path]);
}

/** What an id says; null for another text. */
export function parseId(id: string): Omit<TensorKey, 'kind'> | null {
  let parts: unknown;
  try {
    parts = JSON.parse(id);
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length !== 4) return null;
  const [module, call, role, path] = parts as [unknown, unknown, unknown, unknown];
  const isCall = call === null || (typeof call === 'number' && Number.isInteger(call) && call >= 0);
  if (typeof module !== 'string' || !isCall || typeof path !== 'string' || !isRole(role)) return null;
  return {module, call, role, path};
}

function isRole(role: unknown): role is TensorKey['role'] {
  return typeof role === 'string' && ['input', 'output', 'param', 'attached'].includes(role);
}

/** A tensor with everything that was kept of it. */
export interface Kept {
  id: TensorId;
  /** What the values are; if only a gradient was kept, that. */
  info: KeptInfo;
  variants: readonly KeptInfo[];
}

/** The tensors of a catalogue: modules in the order of keeping, and in each inputs, parameters, outputs and what was attached. */
export function tensorsOf({tensors}: KeptTensors): Map<TensorId, Kept> {
  return new Map([...group(tensors, idOf)].map(([id, of]) => [id, {id, info: of.find(({kind}) => kind === 'value') ?? (of[0] as KeptInfo), variants: of}]));
}

/** Tells what was kept of a tensor apart: `value`, `gradient`, `optimizer_grad`, `loss:actor`. The same for all tensors. */
export type Variant = string;

export function variantOf({kind, loss}: Pick<KeptInfo, 'kind' | 'loss'>): Variant {
  if (loss !== '') return `loss:${loss}`;
  return kind === 'grad' || kind === 'grad_norm' ? 'gradient' : kind;
}

/** The chosen variant; else the values. */
export function variantIn({variants, info}: Kept, chosen: Variant): KeptInfo {
  const isGradient = ({kind}: KeptInfo): boolean => kind !== 'value';
  return variants.find((one) => variantOf(one) === chosen) ?? (chosen === 'gradient' ? variants.find(isGradient) : undefined) ?? info;
}

export function variantName(info: Pick<KeptInfo, 'kind' | 'loss'>): string {
  if (info.loss !== '') return `Gradient of ${info.loss}`;
  const names: Readonly<Partial<Record<TensorKey['kind'], string>>> = {value: 'Value', grad_norm: 'Gradient', grad: 'Gradient', optimizer_grad: "Optimizer's gradient"};
  return names[info.kind] ?? info.kind;
}

/** A name for one who knows the module. */
export function roleName(graph: ModuleGraph | null, {module, role, path}: TensorKey): string {
  if (role === 'input') return tensorNameOf(graph, module, path);
  return path;
}

/** The whole name: `stage1.conv1 · output`, with the number of the call where there are several. */
export function fullName(graph: ModuleGraph | null, key: TensorKey, hasCalls: boolean): string {
  const module = key.module === '' ? 'the model' : key.module;
  const call = hasCalls && key.call !== null ? ` #${key.call + 1}` : '';
  return `${module}${call} · ${roleName(graph, key)}`;
}

/** The tensors of a module, under its name. */
export interface Group {
  module: string;
  tensors: Kept[];
}

const ROLE_ORDER = ['input', 'param', 'attached', 'output'];

/** The tensors that match all words, by module. Calls after the first are not listed: they are chosen beside the tensor. */
export function groupsOf(tensors: Iterable<Kept>, words: string): Group[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, Kept[]>();
  const seen = new Set<string>();
  for (const one of tensors) {
    const {module, role, path, dtype} = one.info;
    const place = JSON.stringify([module, role, path]);
    const text = `${module} ${role} ${path} ${dtype}`.toLowerCase();
    if (seen.has(place) || !wanted.every((word) => text.includes(word))) continue;
    seen.add(place);
    groups.set(module, [...(groups.get(module) ?? []), one]);
  }
  return [...groups].map(([module, found]) => ({
    module,
    tensors: inOrder(found),
  }));
}

/** By role; and `memory #2` after `memory`, also if others were first seen between. */
function inOrder(tensors: Kept[]): Kept[] {
  const number = / #(\d+)$/;
  const nameOf = ({info: {path}}: Kept): string => path.replace(number, '');
  const names = [...new Set(tensors.map(nameOf))];
  const placeOf = (one: Kept): number[] => [ROLE_ORDER.indexOf(one.info.role), names.indexOf(nameOf(one)), Number(number.exec(one.info.path)?.[1] ?? 1)];
  const places = new Map(tensors.map((one) => [one, placeOf(one)]));
  const before = (a: readonly number[], b: readonly number[]): number => (a.map((one, i) => one - (b[i] as number)).find((one) => one !== 0) ?? 0);
  return [...tensors].sort((a, b) => before(places.get(a) as number[], places.get(b) as number[]));
}

/** What was kept at a step. */
export function infosAt({steps, layout, layouts, tensors}: KeptTensors, step: number): Set<KeptInfo> {
  const numbers = layouts[layout[steps.indexOf(step)] ?? -1] ?? [];
  return new Set(numbers.map((at) => tensors[at] as KeptInfo));
}

/** The same tensor of the other calls of its module, in order; if a step is given, only those that were kept there. */
export function callsOf(kept: KeptTensors, id: TensorId, step: number | null = null): number[] {
  const key = parseId(id);
  if (key === null || key.call === null) return [];
  const calls = [...(step === null ? kept.tensors : infosAt(kept, step))].flatMap((info) => (info.module === key.module && info.role === key.role && info.path === key.path && info.call !== null ? [info.call] : []));
  return [...new Set(calls)].sort((a, b) => a - b);
}

/** The steps at which a tensor, in one of its variants, was kept; only those with a label, if one is chosen. */
export function stepsOf(kept: KeptTensors, info: TensorKey & Pick<KeptInfo, 'loss'>, label: string | null = null): number[] {
  const wanted = idOf(info);
  const number = kept.tensors.findIndex((one) => one.kind === info.kind && one.loss === info.loss && idOf(one) === wanted);
  const has = kept.layouts.map((layout) => layout.includes(number));
  return kept.steps.filter((_, i) => has[kept.layout[i] as number] === true && (label === null || kept.labels[i] === label));
}

/** The labels of kept steps. */
export function labelsOf({labels}: KeptTensors): string[] {
  return [...new Set(labels.filter((label) => label !== null))].sort();
}

/** `float32 [16, 6, 8, 8]` */
export function shapeOf({dtype, shape}: Pick<KeptInfo, 'dtype' | 'shape'>): string {
  return `${dtype} [${shape.join(', ')}]`;
}
