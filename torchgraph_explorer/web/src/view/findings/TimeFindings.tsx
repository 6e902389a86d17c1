/** Where findings begin, marked above the slider of the time bar. The list is the way there by keyboard. */

import './findings.css';

import {computed} from '@preact/signals';
import {stepName} from '../../numberText';
import {placeText, titleOf} from '../../findings/names';
import {beginMarks} from '../../findings/onTimeBar';
import {shareAt} from '../time/barPlaces';
import {places} from '../time/TimeCurve';
import {frameAtStep} from '../../steps';
import * as shown from '../state/shown';
import {chosen, found} from './found';
import {goToFinding} from './goToFinding';

const MOST_NAMED = 6;

const marks = computed(() => {
  const steps = shown.data.value?.steps ?? [];
  return beginMarks(found.value?.findings ?? [], (step) => shareOfStep(steps, step));
});

function shareOfStep(steps: readonly number[], step: number): number {
  const frame = frameAtStep(steps, step);
  return frame === null ? NaN : shareAt(places.value.shares, frame);
}

export function TimeFindings() {
  const className = shown.data.value?.session?.class_name ?? '';
  return (
    <div class="time-findings" aria-hidden="true">
      <ChosenSpan />
      {marks.value.map(({share, severity, findings}) => {
        const named = findings.slice(0, MOST_NAMED).map((one) => `${titleOf(one.kind)}: ${placeText(one, className)}`);
        const more = findings.length > MOST_NAMED ? [`and ${findings.length - MOST_NAMED} more`] : [];
        return (
          <i
            key={share}
            class={`time-finding is-${severity}${chosen.value && findings.includes(chosen.value) ? ' is-chosen' : ''}`}
            style={{left: `${100 * share}%`}}
            title={[`From ${stepName(findings[0]!.step)}`, ...named, ...more].join('\n')}
            onClick={() => goToFinding(findings[0]!)}
          />
        );
      })}
    </div>
  );
}

/** From the first to the last step at which the chosen finding was seen. */
function ChosenSpan() {
  const finding = chosen.value;
  const steps = shown.data.value?.steps ?? [];
  if (finding === null || steps.length === 0) return null;
  const [from, to] = [shareOfStep(steps, finding.step), shareOfStep(steps, finding.last_step)];
  return <b class={`time-finding-span is-${finding.severity}`} style={{left: `${100 * from}%`, width: `${100 * (to - from)}%`}} />;
}
