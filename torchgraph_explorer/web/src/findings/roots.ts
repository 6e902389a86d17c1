/** Findings as a tree: root causes, and what follows from each. */

import type {Finding, Severity} from '../api/types';
import {titleOf} from './names';

export interface Root {
  finding: Finding;
  /** What follows from it, directly or through others, in the order in which it was told. */
  followers: Finding[];
}

const RANK: Record<Severity, number> = {info: 0, warning: 1, error: 2};

export function worst(findings: readonly Pick<Finding, 'severity'>[]): Severity {
  return findings.reduce<Severity>((most, {severity}) => (RANK[severity] > RANK[most] ? severity : most), 'info');
}

/** Each root cause with what follows from it. A finding whose cause was left out is a root itself. */
export function rootsOf(findings: readonly Finding[]): Root[] {
  const roots: Root[] = [];
  const rootOf = new Map<number, Root>();
  for (const finding of findings) {
    const known = finding.causes.map((cause) => rootOf.get(cause)).find((one) => one !== undefined);
    const mine = known ?? {finding, followers: []};
    if (known) known.followers.push(finding);
    else roots.push(mine);
    rootOf.set(finding.id, mine);
  }
  return roots;
}

/** So many root causes that say the same stand together. */
const FEWEST_EQUAL = 3;

/** Root causes, those together that say the same of neighbouring modules: each by itself, or three or more. */
export function equalRoots(roots: readonly Root[]): Root[][] {
  const runs: Root[][] = [];
  for (const root of roots) {
    const run = runs.at(-1);
    if (run !== undefined && areEqual(run.at(-1)!, root)) run.push(root);
    else runs.push([root]);
  }
  return runs.flatMap((run) => (run.length < FEWEST_EQUAL ? run.map((root) => [root]) : [run]));
}

function areEqual(one: Root, other: Root): boolean {
  if (one.followers.length > 0 || other.followers.length > 0) return false;
  const [before, now] = [one.finding, other.finding];
  if (before.module === null || now.module === null) return false;
  return said(before) === said(now) && areNeighbours(before.module, now.module);
}

/** What a finding says, but for the name of its module. */
function said({kind, severity, call, path, step, last_step: last, text, module}: Finding): string {
  return JSON.stringify([kind, severity, call, path, step, last, text.replaceAll(`\`${module}\``, '``')]);
}

/** In the same module, or at the same place in modules that differ in their number: `blocks.0.fc` and `blocks.1.fc`. */
function areNeighbours(one: string, other: string): boolean {
  const [around, numbered] = [/[^.]*$/, /\d+/g];
  return one.replace(around, '') === other.replace(around, '') || one.replace(numbered, '0') === other.replace(numbered, '0');
}

/** `NaN or infinity, dead units ×2`: the kinds of findings, the worst first. */
export function kindsText(findings: readonly Finding[]): string {
  const counts = new Map<string, number>();
  const ranked = [...findings].sort((one, other) => RANK[other.severity] - RANK[one.severity]);
  for (const {kind} of ranked) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${lowered(titleOf(kind))}${count > 1 ? ` ×${count}` : ''}`).join(', ');
}

function lowered(title: string): string {
  return title.startsWith('NaN') ? title : title.charAt(0).toLowerCase() + title.slice(1);
}
