/** What a link asks for. */

import {effect, untracked} from '@preact/signals';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {chosen} from './found';
import {goToFinding} from './goToFinding';

/** A link that names a finding and no place leads there, unless one has gone elsewhere before the findings come. */
export function startFindings(): void {
  const {finding, step, selected, pins, view} = choices;
  if (finding.peek() === null || step.peek() !== null || selected.peek() !== null || pins.peek().length > 0) return;
  const place = (): string => JSON.stringify([finding, step, selected, pins, view].map((one) => one.value));
  const linked = untracked(place);
  const stop = effect(() => {
    const isOther = place() !== linked;
    if (!isOther && (chosen.value === null || shown.graph.value === null)) return;
    queueMicrotask(() => stop());
    if (!isOther) queueMicrotask(() => chosen.peek() && goToFinding(chosen.peek()!));
  });
}
