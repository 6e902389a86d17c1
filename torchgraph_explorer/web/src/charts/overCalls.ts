/** One tensor of all calls of a module at one step: its mean as a line, its spread as bands. Pixels of a box, y downwards. */

import type {CallsHistogram} from '../api/xray';
import {formatNumber} from '../numberText';
import type {Row} from '../statistics';
import {nonfinite} from '../statistics';
import {percent} from './format';

/** What is known of one call; without a row, nothing. */
export interface CallRow {
  /** The number of the call, from 0. */
  call: number;
  row: Row | null;
}

export interface OverCalls {
  low: number;
  high: number;
  isLog: boolean;
  /** SVG paths in a box of 1000 × 100; empty where there is nothing. */
  mean: string;
  /** Mean ± standard deviation; empty on a logarithmic scale, where it would reach below zero. */
  spread: string;
  /** From the least to the largest value. */
  range: string;
  /** Where there is NaN or infinity, as places in the list. */
  bad: number[];
}

export const BOX = {width: 1000, height: 100};
const WIDE = 50;
const DEEPEST = 1e-12;

/** Logarithmic where `isPositive` and the means are spread over more than `WIDE`. */
export function overCalls(calls: readonly CallRow[], isPositive: boolean): OverCalls {
  const rows = calls.map(({row}) => (row !== null && row.sampled > 0 && Number.isFinite(row.mean) ? row : null));
  const known = rows.filter((row) => row !== null);
  const least = reduced(known.map(({min}) => min), Math.min, Infinity);
  const most = reduced(known.map(({max}) => max), Math.max, -Infinity);
  const positive = known.map(({mean}) => mean).filter((mean) => mean > 0);
  const lowest = Math.max(reduced(positive, Math.min, Infinity), most * DEEPEST);
  const isLog = isPositive && most > 0 && most / lowest > WIDE;
  const low = known.length === 0 ? 0 : isLog ? lowest : least;
  const high = known.length === 0 ? 1 : most > low ? most : low + (Math.abs(low) || 1);
  const y = (value: number): number => BOX.height * (1 - share(value, low, high, isLog));
  const band = (lower: (row: Row) => number, upper: (row: Row) => number): string => bandPath(rows, (row) => [y(lower(row)), y(upper(row))]);
  return {
    low,
    high,
    isLog,
    mean: linePath(rows, (row) => y(row.mean)),
    spread: isLog ? '' : band(({mean, std, min}) => Math.max(min, mean - std), ({mean, std, max}) => Math.min(max, mean + std)),
    range: band(({min}) => min, ({max}) => max),
    bad: calls.flatMap(({row}, at) => (row !== null && nonfinite(row) > 0 ? [at] : [])),
  };
}

/** Where the middle of call number `at` stands. */
export function xOf(at: number, count: number): number {
  return (BOX.width * (at + 0.5)) / Math.max(1, count);
}

/** `from −0.4 to 0.5`; where the histogram leaves out the extreme elements, how many these are. */
export function rangeText({elements, low, high, counts}: Pick<CallsHistogram, 'elements' | 'low' | 'high' | 'counts'>): string {
  const beyond = Math.round(elements - counts.reduce((sum, count) => sum + count, 0));
  const range = `${formatNumber(low)} to ${formatNumber(high)}`;
  return beyond > 0 ? `drawn from ${range}; ${percent(beyond, elements)} lie beyond` : `from ${range}`;
}

function share(value: number, low: number, high: number, isLog: boolean): number {
  const along = isLog ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, along));
}

/** A line through the calls that are known; where some are missing it is broken. */
function linePath(rows: readonly (Row | null)[], y: (row: Row) => number): string {
  return stretches(rows)
    .map((some) => points(some.map(([at, row]) => [xOf(at, rows.length), y(row)])))
    .join('');
}

function bandPath(rows: readonly (Row | null)[], edges: (row: Row) => [number, number]): string {
  return stretches(rows)
    .map((some) => {
      const there = some.map(([at, row]): [number, number] => [xOf(at, rows.length), edges(row)[1]]);
      const back = some.map(([at, row]): [number, number] => [xOf(at, rows.length), edges(row)[0]]).reverse();
      return `${points([...there, ...back])}Z`;
    })
    .join('');
}

/** Calls in a row that are known; a single one is as wide as its place. */
function stretches(rows: readonly (Row | null)[]): [number, Row][][] {
  const found: [number, Row][][] = [];
  rows.forEach((row, at) => {
    if (row === null) return;
    const last = found.at(-1);
    if (last !== undefined && last.at(-1)![0] === at - 1) last.push([at, row]);
    else found.push([[at, row]]);
  });
  return found.map((some) => (some.length > 1 ? some : [[some[0]![0] - 0.4, some[0]![1]], [some[0]![0] + 0.4, some[0]![1]]]));
}

function points(some: readonly (readonly [number, number])[]): string {
  return some.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${Math.round(x * 10) / 10},${Math.round(y * 100) / 100}`).join('');
}

function reduced(values: readonly number[], choose: (a: number, b: number) => number, start: number): number {
  return values.filter(Number.isFinite).reduce((best, one) => choose(best, one), start);
}
