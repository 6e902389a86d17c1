/** The modules as a table: each statistic at a step, the change of one since another step, and its trend. Pure. */

import {isBad, numberOf} from './codes';
import type {Xray} from './matrix';

export interface TableRow {
  module: string;
  /** By name of the statistic; NaN without a number. */
  values: Record<string, number>;
  /** NaN or infinity at the step. */
  isBad: boolean;
  /** Of the chosen statistic: the ratio to the value at the other step, or for a share the difference. */
  change: number;
  /** Rank correlation of the chosen statistic with time, from −1, ever falling, to 1. */
  trend: number;
}

/** One statistic of all modules at a step, in the order of `Xray.modules`. */
export type Column = Pick<Xray, 'modules' | 'codes'>;

export interface TableSource {
  /** By name of the statistic, at the step. */
  now: ReadonlyMap<string, Column>;
  /** The chosen statistic at the other step. */
  before: Column | null;
  /** The chosen statistic over all steps. */
  all: Xray;
  isShare: boolean;
}

export function tableOf({now, before, all, isShare}: TableSource): TableRow[] {
  const columns = all.first.length;
  const chosen = now.get(all.statistic);
  return all.modules.map((module, row) => {
    const values = Object.fromEntries([...now].map(([name, column]) => [name, numberOf(codeIn(column, module, row))]));
    const [to, from] = [chosen ? (values[all.statistic] ?? NaN) : NaN, before ? numberOf(codeIn(before, module, row)) : NaN];
    const change = isShare ? to - from : to === from ? 1 : to / from;
    const flagged = [...now.values()].some((column) => isBad(codeIn(column, module, row)));
    return {module, values, isBad: flagged, change, trend: trendOf(all.codes.subarray(row * columns, (row + 1) * columns))};
  });
}

/** At that row, where modules have not changed meanwhile. */
function codeIn({modules, codes}: Column, module: string, row: number): number {
  const at = modules[row] === module ? row : modules.indexOf(module);
  const columns = modules.length === 0 ? 0 : codes.length / modules.length;
  return at < 0 ? 0 : (codes[at * columns] ?? 0);
}

const LEAST = 3;

/** Spearman's rank correlation of the cells with their order; cells without a number are left out. */
export function trendOf(codes: Uint16Array): number {
  const values = [...codes].map(numberOf).filter((value) => !Number.isNaN(value));
  if (values.length < LEAST) return NaN;
  const ranks = ranksOf(values);
  const middle = (values.length - 1) / 2;
  let [both, rank, time] = [0, 0, 0];
  ranks.forEach((one, at) => {
    both += (one - middle) * (at - middle);
    rank += (one - middle) ** 2;
    time += (at - middle) ** 2;
  });
  return rank === 0 ? 0 : both / Math.sqrt(rank * time);
}

/** Ranks from 0; equal values share the mean of theirs. */
export function ranksOf(values: readonly number[]): number[] {
  const order = values.map((_, at) => at).sort((one, other) => values[one]! - values[other]!);
  const ranks = new Array<number>(values.length).fill(0);
  for (let start = 0; start < order.length; ) {
    let stop = start + 1;
    while (stop < order.length && values[order[stop]!] === values[order[start]!]) stop++;
    for (let at = start; at < stop; at++) ranks[order[at]!] = (start + stop - 1) / 2;
    start = stop;
  }
  return ranks;
}

/** What the table is sorted by: `module`, `change`, `trend`, or the name of a statistic. */
export interface Order {
  by: string;
  isDescending: boolean;
}

/** Rows whose module's name has all words, in order; those without a number come last. */
export function arranged(rows: readonly TableRow[], {by, isDescending}: Order, filter: string): TableRow[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = rows.filter(({module}) => words.every((word) => module.toLowerCase().includes(word)));
  if (by === 'module') return isDescending ? shown.reverse() : shown;
  const sign = isDescending ? -1 : 1;
  const key = (row: TableRow): number => (by === 'change' ? row.change : by === 'trend' ? row.trend : (row.values[by] ?? NaN));
  return shown
    .map((row) => ({row, value: key(row)}))
    .sort((one, other) => missing(one.value) - missing(other.value) || sign * (one.value - other.value) || 0)
    .map(({row}) => row);
}

function missing(value: number): number {
  return Number.isNaN(value) ? 1 : 0;
}

export interface CsvHead {
  statistics: readonly string[];
  chosen: string;
  since: number;
}

/** The rows as CSV (RFC 4180). Names that a spreadsheet would take for a formula begin with an apostrophe. */
export function csvOf(rows: readonly TableRow[], {statistics, chosen, since}: CsvHead): string {
  const head = ['module', ...statistics, `${chosen} change since step ${since}`, `${chosen} trend`, 'not finite'];
  const lines = rows.map(({module, values, change, trend, isBad: bad}) => [
    quoted(module),
    ...[...statistics.map((name) => values[name] ?? NaN), change, trend].map((value) => (Number.isNaN(value) ? '' : String(value))),
    bad ? '1' : '0',
  ]);
  return [head.map(quoted), ...lines].map((line) => `${line.join(',')}\r\n`).join('');
}

/** A text as a field of CSV. */
export function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
