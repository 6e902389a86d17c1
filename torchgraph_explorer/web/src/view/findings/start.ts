/** What a link asks for. */

import {effect} from '@preact/signals';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {chosen} from './found';
import {goToFinding} from './goToFinding';

/** A link that names a finding and no place leads there. */
export function startFindings(): void {
  const {finding, step, selected, pins} = choices;
  if (finding.peek() === null || step.peek() !== null || selected.peek() !== null || pins.peek().length > 0) return;
  const linked = finding.peek();
  const stop = effect(() => {
    const isOther = finding.value !== linked;
    if (!isOther && (chosen.value === null || shown.graph.value === null)) return;
    queueMicrotask(() => stop());
    if (!isOther) queueMicrotask(() => chosen.peek() && goToFinding(chosen.peek()!));
  });
}
