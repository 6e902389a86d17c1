/** A scalar behind the time bar, and marks for what was noted. */

import './TimeCurve.css';

import {computed} from '@preact/signals';
import {wholeNumber} from '../../numberText';
import {curvePaths, curvePoints, curveScale} from '../../charts/curve';
import {numberOf} from '../../model/scalars';
import {curveName, timesOf} from '../state/axis';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {barPlaces} from './barPlaces';

const WIDTH = 1000;
const HEIGHT = 100;
const MOST_NOTES = 200;

/** The share of the values that the height holds: the bar is too low for spikes, which reach its upper edge. */
const USUAL = 0.97;

/** Where the frames of the model on show stand on the bar. */
export const places = computed(() => {
  const model = shown.model.value;
  return barPlaces(model === null ? {values: new Float64Array(0)} : timesOf(model).axis.value);
});

const curve = computed(() => {
  const model = shown.model.value;
  const data = model?.scalars.data.value;
  const values = data?.values.get(numberOf(data, curveName.value));
  if (model === null || values === undefined) return null;
  const scale = curveScale(values, shown.chart.value.curves, USUAL);
  const {shareOf} = places.value;
  const place = timesOf(model).place.value;
  const onBar = (step: number, time: number): number => {
    const share = shareOf(place(step, time));
    return share >= -0.01 && share <= 1.01 ? share : NaN;
  };
  return scale && curvePaths(values, curvePoints(values, onBar), scale, {width: WIDTH, height: HEIGHT, left: 0, right: 1});
});

/** Notes at their places; of those that would cover each other, as one. */
const notes = computed(() => {
  const model = shown.model.value;
  if (model === null) return [];
  const place = timesOf(model).place.value;
  const found = new Map<number, {share: number; step: number; text: string}>();
  for (const {step, time, text} of model.scalars.data.value?.notes ?? []) {
    const share = places.value.shareOf(place(step, time));
    if (Number.isNaN(share)) continue;
    const inside = Math.max(0, Math.min(1, share));
    const column = Math.round(inside * MOST_NOTES);
    const before = found.get(column);
    const line = `Step ${wholeNumber(step)}: ${text}`;
    found.set(column, {share: inside, step, text: before === undefined ? line : `${before.text}\n${line}`});
  }
  return [...found.values()];
});

export function TimeCurve() {
  const paths = curve.value;
  return (
    <>
      {paths && (
        <svg class="time-curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="time-curve-range" d={paths.range} />
          <path class="time-curve-line" d={paths.line} />
        </svg>
      )}
      {paths && <span class="time-curve-name">{curveName.value}</span>}
      <div class="time-notes">
        {notes.value.map(({share, step, text}) => (
          <button
            key={share}
            type="button"
            class="time-note"
            style={{left: `${100 * share}%`}}
            aria-label={text}
            title={text}
            onClick={() => (choices.step.value = step)}
          />
        ))}
      </div>
    </>
  );
}
