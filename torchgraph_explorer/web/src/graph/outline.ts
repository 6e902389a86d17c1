/** The tree of modules, as the rows of a list. */

import type {ModuleGraph} from '../api/types';
import {callKey} from './keys';
import type {NodeKey} from './keys';
import {moduleClasses, moduleLabel} from './labels';

export interface OutlineModule {
  name: string;
  label: string;
  className: string;
  /** Its calls, in order; empty when this graph does not call it. */
  calls: NodeKey[];
  children: OutlineModule[];
}

export interface OutlineRow {
  module: OutlineModule;
  depth: number;
  isOpen: boolean;
}

/** The model itself, its submodules below it; null for a graph without modules. */
export function outlineOf(graph: ModuleGraph): OutlineModule | null {
  const byName = new Map<string, OutlineModule>();
  for (const {name, class_name: className} of graph.modules) {
    const label = name === '' ? className : moduleLabel(name, moduleClasses(graph));
    byName.set(name, {name, label, className, calls: [], children: []});
  }
  graph.calls.forEach((call, i) => byName.get(graph.modules[call.module]?.name ?? '')?.calls.push(callKey(graph, i)));
  for (const module of byName.values()) if (module.name !== '') ownerOf(byName, module.name)?.children.push(module);
  return byName.get('') ?? null;
}

function ownerOf(byName: Map<string, OutlineModule>, name: string): OutlineModule | undefined {
  return byName.get(parentName(name)) ?? byName.get('');
}

export function parentName(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf('.')));
}

/** The names of the modules around `name`, the model itself included. */
export function ancestors(name: string): string[] {
  const parts = name.split('.');
  return name === '' ? [] : ['', ...parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('.'))];
}

/** The rows on show, from the top, when the modules named in `open` are unfolded. */
export function rowsOf(module: OutlineModule, open: ReadonlySet<string>, depth = 0): OutlineRow[] {
  const isOpen = module.children.length > 0 && open.has(module.name);
  const below = isOpen ? module.children.flatMap((child) => rowsOf(child, open, depth + 1)) : [];
  return [{module, depth, isOpen}, ...below];
}
