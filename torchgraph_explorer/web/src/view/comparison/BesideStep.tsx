/** The step of a run beside its name. */

import type {JSX} from 'preact';
import {stepName} from '../../numberText';
import * as shown from '../state/shown';
import type {Compared} from './state';

/** The run's own step that is shown; marked where it is not the step on show. */
export function BesideStep({run: {model, number}}: {run: Compared}): JSX.Element | null {
  const main = shown.step.value;
  const step = model.step.value;
  if (step === null) return number === 0 ? null : <span class="run-step is-other">no step</span>;
  const isOther = main !== null && step !== main;
  const title = isOther ? `Of this run, ${stepName(step)} is nearest to ${stepName(main)} of the run on show` : undefined;
  return (
    <span class={isOther ? 'run-step is-other' : 'run-step'} title={title}>
      {stepName(step)}
    </span>
  );
}
