/** How the graphs of two runs differ: which modules one has and the other has not, and which have other shapes. */

import type {ModuleGraph, TensorInfo} from '../api/types';
import {moduleMap} from './renames';
import type {Rename} from './renames';

export interface ShapeDifference {
  /** `output`, `weight`. */
  tensor: string;
  ours: string;
  theirs: string;
}

export interface GraphDifference {
  /** Names of modules that only the run on show has, and that only the other one has. */
  onlyOurs: ReadonlySet<string>;
  onlyTheirs: readonly string[];
  /** By module of ours: tensors of other shapes, and another class. */
  shapes: ReadonlyMap<string, readonly ShapeDifference[]>;
  classes: ReadonlyMap<string, {ours: string; theirs: string}>;
  modules: ReadonlyMap<string, string>;
}

/** Compares two graphs. Sizes that varied within a run are no difference. */
export function graphDifference(ours: ModuleGraph, theirs: ModuleGraph, rules: readonly Rename[]): GraphDifference {
  const names = (graph: ModuleGraph): string[] => graph.modules.map(({name}) => name);
  const modules = moduleMap(names(ours), names(theirs), rules);
  const others = new Map(theirs.modules.map((module, i) => [module.name, i]));
  const shapes = new Map<string, ShapeDifference[]>();
  const classes = new Map<string, {ours: string; theirs: string}>();
  const [ourCalls, theirCalls] = [firstCalls(ours), firstCalls(theirs)];
  ours.modules.forEach((module, i) => {
    const at = others.get(modules.get(module.name) ?? '\0');
    if (at === undefined) return;
    const other = theirs.modules[at]!;
    if (other.class_name !== module.class_name) classes.set(module.name, {ours: module.class_name, theirs: other.class_name});
    const [call, otherCall] = [ourCalls.get(i), theirCalls.get(at)];
    const found = [
      ...shapeDifferences(call?.inputs ?? [], otherCall?.inputs ?? []),
      ...shapeDifferences(call?.outputs ?? [], otherCall?.outputs ?? []),
      ...shapeDifferences(module.params, other.params),
    ];
    if (found.length > 0) shapes.set(module.name, found);
  });
  const matched = new Set(modules.values());
  return {
    onlyOurs: new Set(names(ours).filter((name) => !modules.has(name))),
    onlyTheirs: names(theirs).filter((name) => !matched.has(name)),
    shapes,
    classes,
    modules,
  };
}

type FirstCall = ModuleGraph['calls'][number];

function firstCalls({calls}: ModuleGraph): Map<number, FirstCall> {
  const found = new Map<number, FirstCall>();
  for (const call of calls) if (!found.has(call.module)) found.set(call.module, call);
  return found;
}

function shapeDifferences(ours: readonly TensorInfo[], theirs: readonly TensorInfo[]): ShapeDifference[] {
  return ours.flatMap((one) => {
    const other = theirs.find(({path}) => path === one.path);
    if (other === undefined || isSameShape(one, other)) return [];
    return [{tensor: one.path, ours: shapeText(one), theirs: shapeText(other)}];
  });
}

function isSameShape(one: TensorInfo, other: TensorInfo): boolean {
  if (one.shape.length !== other.shape.length) return false;
  return one.shape.every((size, i) => size === null || other.shape[i] === null || size === other.shape[i]);
}

function shapeText({shape}: TensorInfo): string {
  return `[${shape.map((size) => size ?? '?').join(', ')}]`;
}

/** Those of `names` that stand directly in module `owner`, or, if their own owner is gone as well, in none of `names`. */
export function outermost(names: readonly string[]): string[] {
  const all = new Set(names);
  return names.filter((name) => {
    const dot = name.lastIndexOf('.');
    return dot < 0 || !all.has(name.slice(0, dot));
  });
}
