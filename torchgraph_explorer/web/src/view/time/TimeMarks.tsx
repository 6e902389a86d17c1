/** The steps with NaN or infinity, marked on the time bar. */

import {computed} from '@preact/signals';
import {marksOnBar, spansOf} from './badSteps';
import * as shown from '../state/shown';

/** Where they are on the bar. */
export const badSpans = computed(() => spansOf(shown.nonfinite.value?.bad ?? [], shown.data.value?.steps ?? []));
const marks = computed(() => marksOnBar(badSpans.value, (shown.data.value?.steps.length ?? 1) - 1));

export function TimeMarks() {
  if (marks.value.length === 0) return null;
  return (
    <div class="time-marks" aria-hidden="true">
      {marks.value.map(({left, width}) => (
        <i key={left} style={{left: `${left}%`, width: `${width}%`}} />
      ))}
    </div>
  );
}
