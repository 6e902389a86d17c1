/** From codes to colours. Pure. */

import {BAD, numberOf, ZERO} from './codes';

export interface XrayScale {
  low: number;
  high: number;
  isLog: boolean;
  /** 0 to 1. */
  at: (value: number) => number;
}

export type Rgb = readonly [red: number, green: number, blue: number];

const CODES = 1 << 16;
/** Numbers beyond these shares of all cells have the colours of the ends. */
const USUAL = {low: 0.001, high: 0.999};
const DEEPEST = 1e-10;
const NARROW = 1.02;

/** The scale of all cells; null without a number. Shares are from 0 to 1, other statistics logarithmic. */
export function xrayScale(codes: Uint16Array, isShare: boolean): XrayScale | null {
  const counts = new Uint32Array(BAD);
  for (let i = 0; i < codes.length; i++) counts[codes[i]! & ~BAD]!++;
  if (isShare) return hasNumber(counts) ? {low: 0, high: 1, isLog: false, at: (value) => clamp(value)} : null;
  const positive = counts.slice();
  positive.fill(0, 0, 2); // no number, and 0
  const total = positive.reduce((sum, one) => sum + one, 0);
  if (total === 0) return counts[1]! > 0 ? {low: 0, high: 1, isLog: false, at: (value) => clamp(value)} : null;
  const high = numberOf(quantile(positive, Math.ceil(USUAL.high * total)));
  const low = Math.max(numberOf(quantile(positive, Math.floor(USUAL.low * total) + 1)), high * DEEPEST);
  return logScale(low, high);
}

function logScale(least: number, largest: number): XrayScale {
  const [low, high] = largest > least * NARROW ? [least, largest] : [least / 2, largest * 2];
  const [from, span] = [Math.log(low), Math.log(high) - Math.log(low)];
  return {low, high, isLog: true, at: (value) => (value > 0 ? clamp((Math.log(value) - from) / span) : 0)};
}

function hasNumber(counts: Uint32Array): boolean {
  return counts.subarray(1).some((count) => count > 0);
}

/** The code of the cell with this place in the order of all. */
function quantile(counts: Uint32Array, place: number): number {
  let seen = 0;
  for (let code = 0; code < counts.length; code++) {
    seen += counts[code]!;
    if (seen >= place) return code;
  }
  return counts.length - 1;
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/**
 * A colour for each code, as `ImageData` has them; without a number, none. Nothing is allocated for a single one. Zero, which
 * has no place on a logarithmic scale, has a colour of its own there: a gradient that never came is not a small one.
 */
export function colourTable(scale: XrayScale | null, ramp: readonly Rgb[], {bad, zero}: {bad: Rgb; zero: Rgb}): Uint32Array {
  const table = new Uint32Array(CODES);
  table.fill(packed(...bad), BAD);
  if (scale === null) return table;
  const stops = ramp.flat();
  for (let code = 1; code < BAD; code++) table[code] = packedBetween(stops, scale.at(numberOf(code)));
  if (scale.isLog) table[ZERO] = packed(...zero);
  return table;
}

/** The colour at `share` between the stops, which are three numbers each. */
function packedBetween(stops: readonly number[], share: number): number {
  const along = share * (stops.length / 3 - 1);
  const stop = Math.min(stops.length / 3 - 2, Math.floor(along));
  const [at, part] = [3 * stop, along - stop];
  return packed(between(stops, at, part), between(stops, at + 1, part), between(stops, at + 2, part));
}

function between(stops: readonly number[], at: number, part: number): number {
  return Math.round(stops[at]! + (stops[at + 3]! - stops[at]!) * part);
}

function packed(red: number, green: number, blue: number): number {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}
