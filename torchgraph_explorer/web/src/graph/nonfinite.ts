/** Which tensors of a step hold NaN or infinity that should not be there, and what is marked because of them. */

import {group} from 'd3-array';
import {STATISTICS} from '../api/types';
import type {HiddenTensor, ModuleGraph, Node, SeriesInfo, SeriesName, StepStatistics} from '../api/types';
import {callKey} from './keys';
import type {NodeKey} from './keys';
import {rowAt} from '../statistics';
import type {Row} from '../statistics';
import {tensorName} from './labels';
import {ancestors} from './outline';

/** A tensor with NaN or infinity. */
export interface BadTensor {
  name: SeriesName;
  /** What it is called, where that is not its path. */
  label?: string;
  hasNan: boolean;
  hasInfinite: boolean;
}

interface Found {
  name: SeriesInfo;
  row: Row;
}

/** Those of a step. −∞ that masks something is left out, and what comes back along edges, whose ends have it, too: the rule is that of `record/nonfinite.py`, which says why. */
export function badTensors(statistics: StepStatistics | null, series: readonly SeriesInfo[]): BadTensor[] {
  if (statistics === null) return [];
  const found: Found[] = [];
  statistics.series.forEach((id, at) => {
    const name = series[id];
    if (name && name.role !== 'edge' && isBad(statistics.statistics, at)) found.push({name, row: rowAt(statistics.statistics, at)});
  });
  return [...withoutMasks(found, series).map(badTensor), ...(statistics.hidden ?? []).map(hiddenTensor)];
}

function badTensor({name, row}: Found): BadTensor {
  return {name, hasNan: row.nan > 0, hasInfinite: row.positive_infinity + row.negative_infinity > 0};
}

function hiddenTensor({has_nan: hasNan, has_infinite: hasInfinite, ...name}: HiddenTensor): BadTensor {
  return {name, hasNan, hasInfinite};
}

const NAN = STATISTICS.indexOf('nan'); // and +∞ and −∞ beside it

function isBad(statistics: Float32Array, row: number): boolean {
  const at = row * STATISTICS.length + NAN;
  return statistics[at]! > 0 || statistics[at + 1]! > 0 || statistics[at + 2]! > 0;
}

function withoutMasks(found: readonly Found[], series: readonly SeriesInfo[]): readonly Found[] {
  if (!found.some(isLow)) return found;
  const graded = new Set(series.filter(({kind}) => kind === 'grad' || kind === 'grad_norm').map(tensorOf));
  const rest = found.filter((one) => !(isLow(one) && isAdditiveMask(one, graded)));
  const giving = new Set(rest.filter(({name}) => name.role === 'output' && name.kind === 'value').map(({name}) => callOf(name)));
  const isTaken = ({name}: Found): boolean => name.role === 'input' && name.kind === 'value' && !giving.has(callOf(name));
  return rest.filter((one) => !(isLow(one) && isTaken(one)));
}

/** There is −∞ and nothing worse. */
function isLow({row}: Found): boolean {
  return !(row.nan > 0) && !(row.positive_infinity > 0);
}

function isAdditiveMask({name, row}: Found, graded: ReadonlySet<string>): boolean {
  return name.kind === 'value' && row.sampled > 0 && row.zeros === row.sampled && !graded.has(tensorOf(name));
}

function callOf({module, call}: SeriesName): NodeKey {
  return `${module}#${call}`;
}

function tensorOf({module, call, role, path}: SeriesName): string {
  return JSON.stringify([module, call, role, path]);
}

/** What a node, call or module is marked with. */
export interface Mark {
  /** What its values hold; where these are finite, its gradients and what an optimizer made of them. */
  hasNan: boolean;
  hasInfinite: boolean;
  /** No value does. */
  isGradientOnly: boolean;
  /** Only something inside has it. */
  isInside: boolean;
  /** The first of what it has itself, values before gradients: `∞ in output`, `NaN in gradient of weight`. */
  tensors: string[];
  /** How many it has beside these. */
  more: number;
}

const MOST_NAMED = 3;

/** What is marked in a graph. */
export interface Marks {
  calls: Map<number, Mark>;
  /** By index in `ModuleGraph.nodes`. */
  nodes: Map<number, Mark>;
  modules: Map<string, Mark>;
  /** Nodes out of which NaN or infinity goes on, and into which it comes. */
  gives: Set<number>;
  takes: Set<number>;
}

export const NO_MARKS: Marks = {calls: new Map(), nodes: new Map(), modules: new Map(), gives: new Set(), takes: new Set()};

/** What to mark because of `bad`: the calls and tensors that have it, and all that they are inside of. */
export function marksOf(graph: ModuleGraph, bad: readonly BadTensor[], index: ReadonlyMap<NodeKey, number>): Marks {
  if (bad.length === 0) return NO_MARKS;
  const marks: Marks = {calls: new Map(), nodes: new Map(), modules: new Map(), gives: new Set(), takes: new Set()};
  const callsOf = callsByModule(graph);
  const parameters = new Map(graph.modules.map((module) => [module.name, module.forward_parameters ?? []]));
  const ordered = valuesFirst(bad);
  for (const nameless of ordered) {
    const one = labelled(nameless, parameters);
    const {module, call, role} = one.name;
    const known = call === null ? (callsOf.get(module) ?? []) : [index.get(`${module}#${call}`)].filter((found) => found !== undefined);
    markModule(marks.modules, one);
    for (const number of known) markCall(marks, graph, {number, one, isInside: role === 'attached'});
  }
  markNodes(marks, graph, tensorsByKey(ordered));
  return marks;
}

function valuesFirst(bad: readonly BadTensor[]): BadTensor[] {
  return [...bad.filter(({name}) => name.kind === 'value'), ...bad.filter(({name}) => name.kind !== 'value')];
}

/** An input goes by the name that its module's `forward` has for it. */
function labelled(one: BadTensor, parameters: ReadonlyMap<string, readonly string[]>): BadTensor {
  const {role, module, path} = one.name;
  return role === 'input' ? {...one, label: tensorName(path, parameters.get(module) ?? [])} : one;
}

function callsByModule(graph: ModuleGraph): Map<string, number[]> {
  return group(graph.calls.keys(), (call) => graph.modules[graph.calls[call]!.module]?.name ?? '');
}

function markModule(modules: Map<string, Mark>, one: BadTensor): void {
  const {module} = one.name;
  modules.set(module, joined(modules.get(module), one));
  for (const around of ancestors(module)) modules.set(around, inside(modules.get(around), one));
}

function markCall({calls}: Marks, graph: ModuleGraph, {number, one, isInside}: {number: number; one: BadTensor; isInside: boolean}): void {
  calls.set(number, isInside ? inside(calls.get(number), one) : joined(calls.get(number), one));
  for (let around = graph.calls[number]?.parent ?? null; around !== null; around = graph.calls[around]?.parent ?? null) {
    calls.set(around, inside(calls.get(around), one));
  }
}

/** By call and path, for the round nodes: inputs and outputs of the open call, and attached tensors. */
function tensorsByKey(bad: readonly BadTensor[]): Map<string, BadTensor[]> {
  return group(bad, ({name: {module, call, role, path}}) => tensorKey(`${module}#${call}`, role, path));
}

function tensorKey(call: NodeKey, role: string, path: string): string {
  return `${call} ${role} ${path}`;
}

function markNodes(marks: Marks, graph: ModuleGraph, byKey: ReadonlyMap<string, readonly BadTensor[]>): void {
  graph.nodes.forEach((node, i) => {
    const mark = node.call === null ? markOfTensor(graph, node, byKey) : marks.calls.get(node.call);
    if (!mark) return;
    marks.nodes.set(i, mark);
    if (node.call === null ? !mark.isGradientOnly : hasValue(graph, node.call, 'output', byKey)) marks.gives.add(i);
    if (node.call === null ? !mark.isGradientOnly : hasValue(graph, node.call, 'input', byKey)) marks.takes.add(i);
  });
}

function markOfTensor(graph: ModuleGraph, {kind, inside: owner, tensor}: Node, byKey: ReadonlyMap<string, readonly BadTensor[]>): Mark | undefined {
  const call = owner === null ? '#0' : callKey(graph, owner);
  const bad = byKey.get(tensorKey(call, kind, tensor?.path ?? '')) ?? [];
  return bad.reduce<Mark | undefined>((mark, one) => joined(mark, one), undefined);
}

function hasValue(graph: ModuleGraph, call: number, role: 'input' | 'output', byKey: ReadonlyMap<string, readonly BadTensor[]>): boolean {
  const tensors = graph.calls[call]?.[role === 'input' ? 'inputs' : 'outputs'] ?? [];
  const key = callKey(graph, call);
  return tensors.some(({path}) => byKey.get(tensorKey(key, role, path))?.some(({name}) => name.kind === 'value'));
}

/** With one more tensor, whose kind is that of the last one or comes after it. */
function joined(mark: Mark | undefined, {name, label, hasNan, hasInfinite}: BadTensor): Mark {
  const own = mark?.isInside ? undefined : mark; // what it has itself says more than what is inside of it
  const isGradient = name.kind !== 'value';
  const text = `${kindsText(hasNan, hasInfinite)} in ${tensorText({...name, path: label ?? name.path})}`;
  const before = own?.tensors ?? [];
  const isNamed = before.length < MOST_NAMED;
  const named = {tensors: isNamed ? [...before, text] : before, more: (own?.more ?? 0) + (isNamed ? 0 : 1)};
  if (own && isGradient && !own.isGradientOnly) return {...own, ...named};
  return {hasNan: hasNan || (own?.hasNan ?? false), hasInfinite: hasInfinite || (own?.hasInfinite ?? false), isGradientOnly: isGradient, isInside: false, ...named};
}

function inside(mark: Mark | undefined, one: BadTensor): Mark {
  return mark && !mark.isInside ? mark : {...joined(mark ? {...mark, isInside: false} : undefined, one), isInside: true, tensors: [], more: 0};
}

/** What a series is called beside its module: `output`, `gradient of weight`. */
export function tensorText({role, path, kind}: Pick<SeriesName, 'role' | 'path' | 'kind'>): string {
  const name = role === 'param' ? `parameter ${path}` : role === 'attached' ? `attached tensor ${path}` : path;
  return {
    value: name,
    grad: `gradient of ${path}`,
    grad_norm: `gradient of ${path}`,
    optimizer_grad: `gradient of ${path} that the optimizer took`,
    update: `update of ${path}`,
    update_ratio: `update-to-weight ratio of ${path}`,
    time: 'time of forward',
    memory: 'memory of outputs',
  }[kind];
}

/** What is written on a mark: `NaN`, `∞`, `NaN ∞`; with what it is only in. */
export function markText({hasNan, hasInfinite, isGradientOnly, isInside}: Mark): string {
  return `${kindsText(hasNan, hasInfinite)}${isInside ? ' inside' : isGradientOnly ? ' gradient' : ''}`;
}

function kindsText(hasNan: boolean, hasInfinite: boolean): string {
  return [hasNan && 'NaN', hasInfinite && '∞'].filter(Boolean).join(' ');
}

/** A mark in words. */
export function markWords(mark: Mark): string {
  if (mark.isInside) return markText(mark);
  return `${mark.tensors.join(', ')}${mark.more > 0 ? ` and ${mark.more} more` : ''}`;
}
