/** The steps with NaN or infinity, and those whose update was skipped, marked on the time bar. */

import {computed} from '@preact/signals';
import {skippedFrames} from '../../model/stepFacts';
import {kept} from '../tensors/store';
import {keptSpans, marksOnBar, spansOf} from './badSteps';
import type {BarMark, Span} from './badSteps';
import * as shown from '../state/shown';
import {shareAt} from './barPlaces';
import {places} from './TimeCurve';

/** Where those with NaN or infinity are on the bar. */
export const badSpans = computed(() => spansOf(shown.nonfinite.value?.bad ?? [], shown.data.value?.steps ?? []));
const skippedSpans = computed(() => (shown.data.value ? skippedFrames(shown.data.value) : []).map((frame) => ({from: frame - 0.5, to: frame + 0.5})));
const badMarks = computed(() => marksOnBar(onBar(badSpans.value), 1));
const skippedMarks = computed(() => marksOnBar(onBar(skippedSpans.value), 1));

const keptMarks = computed(() => marksOnBar(onBar(keptSpans(kept.value.steps, shown.data.value?.steps ?? [])), 1));

/** Spans of frames as shares of the bar. */
function onBar(spans: readonly Span[]): Span[] {
  const {shares} = places.value;
  return spans.map(({from, to}) => ({from: shareAt(shares, from), to: shareAt(shares, to)}));
}

export function TimeMarks() {
  if (badMarks.value.length + skippedMarks.value.length + keptMarks.value.length === 0) return null;
  return (
    <div class="time-marks" aria-hidden="true">
      {keptMarks.value.map((mark) => item(mark, 'is-kept'))}
      {skippedMarks.value.map((mark) => item(mark, 'is-skipped'))}
      {badMarks.value.map((mark) => item(mark, 'is-bad'))}
    </div>
  );
}

function item({left, width}: BarMark, kind: string) {
  return <i key={`${kind} ${left}`} class={kind} style={{left: `${left}%`, width: `${width}%`}} />;
}
