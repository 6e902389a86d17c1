/** The steps with NaN or infinity, marked on the time bar. */

import {computed} from '@preact/signals';
import {marksOnBar, spansOf} from './badSteps';
import {nonfinite} from '../../model/nonfinite';
import * as store from '../state/choices';

/** Where they are on the bar. */
export const badSpans = computed(() => spansOf(nonfinite.value?.bad ?? [], store.data.value?.steps ?? []));
const shown = computed(() => marksOnBar(badSpans.value, (store.data.value?.steps.length ?? 1) - 1));

export function TimeMarks() {
  if (shown.value.length === 0) return null;
  return (
    <div class="time-marks" aria-hidden="true">
      {shown.value.map(({left, width}) => (
        <i key={left} style={{left: `${left}%`, width: `${width}%`}} />
      ))}
    </div>
  );
}
