/** Where findings are: their tensors, and what of the graph and of the tree is marked because of them. */

import type {Finding, ModuleGraph, Role, SeriesInfo, SeriesName, Severity} from '../api/types';
import {callKey} from '../graph/keys';
import type {NodeKey} from '../graph/keys';
import {ancestors} from '../graph/outline';
import {countText, titleOf} from './names';
import {worst} from './roots';

/** The series that a finding's band is of, else that of its tensor's values; null where it is of no recorded tensor. */
export function seriesOf({module, call, path, band}: Finding, series: readonly SeriesInfo[]): SeriesInfo | null {
  if (module === null || path === null) return null;
  const own = series.filter((one) => one.module === module && one.call === call && one.path === path);
  return own.find(({kind}) => kind === (band?.kind ?? 'value')) ?? own[0] ?? null;
}

/** The tensor of a finding, by its names; null where it is of no single one. */
export function tensorOf(finding: Finding, series: readonly SeriesInfo[]): SeriesName | null {
  const {module, call, path} = finding;
  if (module === null || path === null) return null;
  return seriesOf(finding, series) ?? {module, call, path, role: guessed(call, path), kind: 'value'};
}

/** The finding that knows from a step before, which was not recorded, where what is not finite at `step` came from. */
export function earlierOrigin(findings: readonly Finding[], step: number): Finding | null {
  return findings.find((one) => one.kind === 'nan' && one.step === step && 'not_finite_then' in one.evidence) ?? null;
}

function guessed(call: number | null, path: string): Role {
  if (call === null) return 'param';
  return path.startsWith('input') ? 'input' : 'output';
}

/** What a node, or a module of the tree, is marked with. */
export interface FindingMark {
  own: Finding[];
  /** Of what is inside of it. */
  inside: Finding[];
}

export interface FindingMarks {
  calls: ReadonlyMap<NodeKey, FindingMark>;
  modules: ReadonlyMap<string, FindingMark>;
}

export const NO_FINDING_MARKS: FindingMarks = {calls: new Map(), modules: new Map()};

/** Marks the calls and modules that findings name, and all that they are inside of. */
export function findingMarks(graph: ModuleGraph, findings: readonly Finding[]): FindingMarks {
  const calls = new Map<NodeKey, FindingMark>();
  const modules = new Map<string, FindingMark>();
  const byModule = callsByModule(graph);
  for (const finding of findings) {
    const {module, call} = finding;
    if (module === null) continue;
    add(modules, module, 'own', finding);
    for (const around of ancestors(module)) add(modules, around, 'inside', finding);
    const named = (byModule.get(module) ?? []).filter((index) => call === null || graph.calls[index]?.call === call);
    for (const index of named) add(calls, callKey(graph, index), 'own', finding);
    for (const index of around(graph, named)) add(calls, callKey(graph, index), 'inside', finding);
  }
  return {calls, modules};
}

function callsByModule(graph: ModuleGraph): Map<string, number[]> {
  const found = new Map<string, number[]>();
  graph.calls.forEach(({module}, index) => {
    const name = graph.modules[module]?.name ?? '';
    const known = found.get(name);
    if (known) known.push(index);
    else found.set(name, [index]);
  });
  return found;
}

/** The calls that any of `calls` is inside of, each once. */
function around(graph: ModuleGraph, calls: readonly number[]): Set<number> {
  const found = new Set<number>();
  for (const call of calls) {
    let parent = graph.calls[call]?.parent ?? null;
    while (parent !== null && !found.has(parent)) {
      found.add(parent);
      parent = graph.calls[parent]?.parent ?? null;
    }
  }
  return found;
}

function add<Key>(marks: Map<Key, FindingMark>, key: Key, where: keyof FindingMark, finding: Finding): void {
  const mark = marks.get(key) ?? {own: [], inside: []};
  mark[where].push(finding);
  marks.set(key, mark);
}

/** How severe the worst is, also of what is inside. */
export function severityOf({own, inside}: FindingMark): Severity {
  return worst([...own, ...inside]);
}

/** What is written on a node: `Dead units`, `3 findings`, `2 inside`. */
export function badgeText({own, inside}: FindingMark): string {
  if (own.length === 0) return `${countText(inside.length)} inside`;
  return own.length === 1 ? titleOf(own[0]!.kind) : countText(own.length);
}

/** The mark in words: `1 finding, warning: Dead units`, `2 findings inside, error`. */
export function badgeWords({own, inside}: FindingMark): string {
  if (own.length === 0) return `${countText(inside.length)} inside, ${worst(inside)}`;
  const titles = [...new Set(own.map(({kind}) => titleOf(kind)))].join(', ');
  return `${countText(own.length)}, ${worst(own)}: ${titles}`;
}
