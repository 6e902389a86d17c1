/** How modules and tensors are called where they are shown. `torchgraph_explorer/labels.py` is the same in Python. */

import type {ModuleGraph, SeriesInfo} from '../api/types';

const ARGUMENT = /^input\[(?:(\d+)|'([^'\\]*)'|"([^"\\]*)")\](.*)$/s;
const IDENTIFIER = /^[A-Za-z_]\w*$/;

/**
 * A tensor's path in the words of its module's `forward`: `input[0]['mask']` as `batch['mask']`. The path itself where it is
 * no argument, or where `forward` has no parameter for it, or none is known.
 */
export function tensorName(path: string, parameters: readonly string[]): string {
  const [found, position, single, double, rest = ''] = ARGUMENT.exec(path) ?? [];
  if (found === undefined || parameters.length === 0) return path;
  const name = position === undefined ? keyword(single ?? double ?? '') : positional(Number(position), parameters);
  return name === null ? path : name + rest;
}

function keyword(key: string): string | null {
  return IDENTIFIER.test(key) ? key : null;
}

/** The parameter that takes positional argument number `at`; of `*args`, which of them. */
function positional(at: number, parameters: readonly string[]): string | null {
  const last = parameters.length - 1;
  const rest = parameters[last] as string;
  if (rest.startsWith('*') && at >= last) return `${rest.slice(1)}[${at - last}]`;
  return parameters[at] ?? null;
}

type Classes = ReadonlyMap<string, string>;

/**
 * The last part of a module's name; of what stands in a list or a dictionary, that one's label before it: `stage2.conv1` is
 * `conv1`, `encoder.blocks.0` is `blocks.0`, and `encoder.blocks.0.1` is `blocks.0.1`.
 */
export function moduleLabel(name: string, classes: Classes): string {
  const dot = name.lastIndexOf('.');
  const [owner, last] = [name.slice(0, Math.max(0, dot)), name.slice(dot + 1)];
  const isOfMany = /^\d+$/.test(last) || classes.get(owner) === 'ModuleDict';
  return owner !== '' && isOfMany ? `${moduleLabel(owner, classes)}.${last}` : last;
}

/** What a module is called in the inside of a call of the module `outer`: no other one there has that label. */
export function labelWithin(name: string, outer: string, classes: Classes): string {
  const prefix = outer === '' ? '' : `${outer}.`;
  if (!name.startsWith(prefix)) return name;
  const inner = name.slice(prefix.length);
  const dot = inner.indexOf('.');
  const child = dot < 0 ? inner : inner.slice(0, dot);
  return moduleLabel(prefix + child, classes) + inner.slice(child.length);
}

/** The label of the first of several, then `act #2` and so on. */
export function numbered(label: string, number: number): string {
  return number === 1 ? label : `${label} #${number}`;
}

/** Which parameter of its module's `forward` an input was given to; after all of them for one that is not known. */
function signaturePlace(path: string, parameters: readonly string[]): number {
  const name = tensorName(path, parameters);
  const at = parameters.map((one) => one.replace(/^\*/, '')).findIndex((one) => name.startsWith(one) && !/^\w/.test(name.slice(one.length)));
  return at < 0 ? parameters.length : at;
}

/** Inputs in the order of the parameters of `forward`. */
export function bySignature<T extends {path: string}>(inputs: readonly T[], parameters: readonly string[]): T[] {
  return [...inputs].sort((a, b) => signaturePlace(a.path, parameters) - signaturePlace(b.path, parameters));
}

const classesOf = new WeakMap<ModuleGraph, Classes>();

/** Name of the class of each module of a graph. */
export function moduleClasses(graph: ModuleGraph): Classes {
  const known = classesOf.get(graph) ?? new Map(graph.modules.map(({name, class_name}) => [name, class_name]));
  classesOf.set(graph, known);
  return known;
}

/** A called module's label in the inside of call `outer`; null is the top. The model itself goes by its class. */
export function callLabel(graph: ModuleGraph, call: number, outer: number | null): string {
  const module = graph.modules[graph.calls[call]?.module ?? -1];
  if (!module || module.name === '') return module?.class_name ?? '';
  return labelWithin(module.name, outer === null ? '' : moduleNameOf(graph, outer), moduleClasses(graph));
}

export function moduleNameOf(graph: ModuleGraph, call: number): string {
  return graph.modules[graph.calls[call]?.module ?? -1]?.name ?? '';
}

/** What a tensor of a call of `module` is called, there where its role is known. */
export function tensorNameOf(graph: ModuleGraph | null, module: string, path: string): string {
  const owner = graph?.modules.find(({name}) => name === module);
  return tensorName(path, owner?.forward_parameters ?? []);
}

export function seriesName(graph: ModuleGraph | null, {module, role, path}: SeriesInfo): string {
  return role === 'input' ? tensorNameOf(graph, module, path) : path;
}
