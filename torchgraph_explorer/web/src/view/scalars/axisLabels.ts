/** The labels of a scalar's value axis. */

import type {CurveScale} from '../../charts/curve';
import {axisNumberThat} from '../../charts/format';
import {linearScale, valueTicks} from '../../charts/scale';

export interface AxisLabel {
  value: number;
  text: string;
}

/** The ends of the axis, unless one reads as a round number between, as where all values are one; and those round numbers. */
export function axisLabels(scale: CurveScale, fits: (text: string) => boolean): AxisLabel[] {
  const length = scale.high - scale.low;
  const between = scale.kind === 'linear' && Number.isFinite(length) ? valueTicks(linearScale(scale), 2) : decades(scale);
  const free = between.filter((value) => [0, 1].every((end) => Math.abs(scale.position(value) - end) > 0.2));
  const label = (value: number): AxisLabel => ({value, text: axisNumberThat(fits, value, scale.kind === 'log' ? Math.abs(value) : length)});
  const [ends, others] = [[scale.low, scale.high].map(label), free.map(label)];
  return ends.some(({text}) => others.some((other) => other.text === text)) ? others : [...ends, ...others];
}

/** At most three powers of ten. */
function decades({low, high}: CurveScale): number[] {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const gap = Math.max(1, Math.ceil((last - first + 1) / 3));
  const found: number[] = [];
  for (let power = first; power <= last; power += gap) found.push(10 ** power);
  return found;
}
