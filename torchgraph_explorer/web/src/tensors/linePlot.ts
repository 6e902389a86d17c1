/** A line over steps or calls as a path. Pixels, y downwards. Pure. */

export interface LinePlot {
  path: string;
  /** Where single values stand, which a line does not show. */
  dots: [x: number, y: number][];
  /** Where a value is NaN or infinite. */
  bad: number[];
  low: number;
  high: number;
  first: number;
  last: number;
  /** Of each value. */
  xs: number[];
}

export function linePlot(places: ArrayLike<number>, values: ArrayLike<number>, {width, height}: {width: number; height: number}, bounds?: {low: number; high: number}, ends?: {first: number; last: number}): LinePlot {
  const all = Array.from(values);
  const finite = all.filter(Number.isFinite);
  const low = bounds?.low ?? finite.reduce((least, one) => Math.min(least, one), Infinity);
  const high = bounds?.high ?? finite.reduce((most, one) => Math.max(most, one), -Infinity);
  const [first, last] = ends === undefined ? [places[0] ?? 0, places[places.length - 1] ?? 1] : [ends.first, ends.last];
  const xOf = (place: number): number => (last > first ? ((place - first) / (last - first)) * width : width / 2);
  const yOf = (value: number): number => (high > low ? height * (1 - (value - low) / (high - low)) : height / 2);
  const xs = Array.from(places, xOf);
  let path = '';
  let isOn = false;
  const bad: number[] = [];
  const dots: [number, number][] = [];
  all.forEach((value, i) => {
    const x = xs[i] as number;
    if (!Number.isFinite(value)) {
      bad.push(x);
      isOn = false;
      return;
    }
    path += `${isOn ? 'L' : 'M'}${short(x)} ${short(yOf(value))}`;
    dots.push([x, yOf(value)]);
    isOn = true;
  });
  return {path, dots, bad, low: finite.length > 0 ? low : NaN, high: finite.length > 0 ? high : NaN, first, last, xs};
}

/** So much do facts of equal tensors differ by rounding, as a share. */
const ROUNDING = 1e-6;

/** Bounds that draw a level line, where the values differ by no more than rounding; undefined elsewhere. */
export function levelOf(values: ArrayLike<number>): {low: number; high: number} | undefined {
  const finite = Array.from(values).filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const isLevel = high > low && high - low <= ROUNDING * Math.max(Math.abs(low), Math.abs(high));
  return isLevel ? {low, high: low} : undefined;
}

/** Number of the place nearest to a pixel. */
export function nearest(xs: readonly number[], x: number): number | null {
  let best: number | null = null;
  xs.forEach((one, i) => {
    if (best === null || Math.abs(one - x) < Math.abs((xs[best] as number) - x)) best = i;
  });
  return best;
}

function short(pixels: number): string {
  return String(Math.round(pixels * 10) / 10);
}
