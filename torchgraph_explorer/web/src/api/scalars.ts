/** Logged scalars as `api/scalars` and an exported page send them. */

import {arrayOf} from './pack';
import type {Packed} from './pack';
import type {ScalarValues} from './types';

/** The values of scalar `number`, in bins of `unit` steps; `prefix` is that of the arrays' names. */
export function scalarValues(packed: Packed<unknown>, prefix: string, unit: number): ScalarValues {
  const floats = (name: string): Float64Array => arrayOf(packed, `${prefix}${name}`, Float64Array);
  const [step, time, value] = [floats('step'), floats('time'), floats('value')];
  if (unit === 1 || step.length === 0) return ofSteps(step, time, value);
  const whole = (name: string): Uint32Array => arrayOf(packed, `${prefix}${name}`, Uint32Array);
  return {step, time, value, last: floats('last'), count: whole('count'), bad: whole('bad'), low: floats('low'), high: floats('high')};
}

/** Values that stand for themselves. */
export function ofSteps(step: Float64Array, time: Float64Array, value: Float64Array): ScalarValues {
  const finite = value.map((one) => (Number.isFinite(one) ? one : NaN));
  const bad = Uint32Array.from(value, (one) => (Number.isFinite(one) ? 0 : 1));
  return {step, time, value, last: step, count: new Uint32Array(step.length).fill(1), bad, low: finite, high: finite};
}
