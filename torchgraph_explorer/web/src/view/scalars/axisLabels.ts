/** The labels of a scalar's value axis. */

import type {CurveScale} from '../../charts/curve';
import {axisNumberThat} from '../../charts/format';
import {linearScale, valueTicks} from '../../charts/scale';

export interface AxisLabel {
  value: number;
  text: string;
}

/**
 * The ends of the axis, unless one reads as a round number between, as where all values are one; and those round numbers.
 * They are as short as `fits` asks for, unless that makes two of them read alike. No two do.
 */
export function axisLabels(scale: CurveScale, fits: (text: string) => boolean): AxisLabel[] {
  const length = scale.high - scale.low;
  const between = scale.kind === 'linear' && Number.isFinite(length) ? valueTicks(linearScale(scale), 2) : decades(scale);
  const free = between.filter((value) => [0, 1].every((end) => Math.abs(scale.position(value) - end) > 0.2));
  const textIn = (hasRoom: (text: string) => boolean) => (value: number): AxisLabel => ({value, text: axisNumberThat(hasRoom, value, scale.kind === 'log' ? Math.abs(value) : length)});
  const [short, exact] = [textIn(fits), textIn(() => true)];
  const ends = [scale.low, scale.high];
  const isRound = ends.map(short).some(({text}) => free.map(short).some((other) => other.text === text));
  const shown = isRound ? free : [...ends, ...free];
  const labels = shown.map(short);
  return isRound || hasTwins(labels) ? withoutTwins(shown.map(exact)) : labels;
}

/** Two values read alike. */
function hasTwins(labels: readonly AxisLabel[]): boolean {
  return withoutTwins(labels).length < labels.length;
}

function withoutTwins(labels: readonly AxisLabel[]): AxisLabel[] {
  return labels.filter(({text}, at) => labels.findIndex((other) => other.text === text) === at);
}

/** At most three powers of ten. */
function decades({low, high}: CurveScale): number[] {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const gap = Math.max(1, Math.ceil((last - first + 1) / 3));
  const found: number[] = [];
  for (let power = first; power <= last; power += gap) found.push(10 ** power);
  return found;
}
