/** Maps values of nodes onto a colour scale. Colours themselves are CSS variables. */

/** A scale from values to 0…1, that is from little to much, or for signed values from negative to positive. */
export interface ColourScale {
  low: number;
  high: number;
  isLog: boolean;
  isSigned: boolean;
  at: (value: number) => number;
}

const WIDE = 50;
const DEEPEST = 1e-12;

/** The scale over finite `values`; null when there are none. Logarithmic when they are spread over more than `WIDE`. */
export function colourScale(values: readonly number[], isSigned: boolean): ColourScale | null {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return null;
  return isSigned ? signedScale(finite) : sequentialScale(finite);
}

function signedScale(values: readonly number[]): ColourScale {
  const reach = Math.max(...values.map(Math.abs)) || 1;
  return {low: -reach, high: reach, isLog: false, isSigned: true, at: (value) => clamp((value / reach + 1) / 2)};
}

function sequentialScale(values: readonly number[]): ColourScale {
  const high = Math.max(...values);
  const positive = values.filter((value) => value > 0);
  const least = Math.max(Math.min(...positive), high * DEEPEST);
  const isLog = positive.length > 1 && high / least > WIDE;
  if (isLog) return logScale(least, high);
  const low = Math.min(0, ...values);
  const span = high - low || 1;
  return {low, high: low + span, isLog, isSigned: false, at: (value) => clamp((value - low) / span)};
}

function logScale(low: number, high: number): ColourScale {
  const [from, span] = [Math.log(low), Math.log(high / low)];
  return {low, high, isLog: true, isSigned: false, at: (value) => (value <= low ? 0 : clamp((Math.log(value) - from) / span))};
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** The colour at `t` from 0 to 1, mixed from the five stops `--seq-0`…`--seq-4` or `--div-0`…`--div-4`. */
export function colourAt(t: number, isSigned: boolean): string {
  const name = isSigned ? '--div' : '--seq';
  const along = clamp(t) * 4;
  const stop = Math.min(3, Math.floor(along));
  const share = Math.round((along - stop) * 100);
  return `color-mix(in oklab, var(${name}-${stop + 1}) ${share}%, var(${name}-${stop}))`;
}

/** The colour at `t` of a count of NaN and infinity: ever more red, and always such that text and hatching are seen on it. */
export function troubleColourAt(t: number): string {
  return `color-mix(in oklab, var(--bad) ${Math.round(8 + 42 * clamp(t))}%, var(--surface))`;
}

/** Does the colour at `t` stand out against the surface, so that what is written on it must be inverse? */
export function isStrong(t: number, isSigned: boolean): boolean {
  return isSigned ? Math.abs(t - 0.5) > 0.36 : t > 0.6;
}
