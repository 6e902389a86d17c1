/** Where findings begin on the time bar. */

import type {Finding, Severity} from '../api/types';
import {worst} from './roots';

/** Findings that begin so close to each other that they are one mark. */
export interface BeginMark {
  /** Share of the bar, from 0 to 1. */
  share: number;
  severity: Severity;
  findings: Finding[];
}

/** The marks on a bar of so many columns; `shareOf` tells where a step is, NaN for one that has no place. */
export function beginMarks(findings: readonly Finding[], shareOf: (step: number) => number, columns = 100): BeginMark[] {
  const found = new Map<number, Finding[]>();
  for (const finding of findings) {
    const share = shareOf(finding.step);
    if (Number.isNaN(share)) continue;
    const column = Math.round(Math.min(1, Math.max(0, share)) * columns);
    found.set(column, [...(found.get(column) ?? []), finding]);
  }
  const ordered = [...found].sort(([one], [other]) => one - other);
  return ordered.map(([column, all]) => ({share: column / columns, severity: worst(all), findings: all}));
}
