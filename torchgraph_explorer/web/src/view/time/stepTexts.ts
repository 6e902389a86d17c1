/** What is said of the step on show, besides its number. */

import type {StepEnd} from '../../api/types';
import type {StepFacts} from '../../model/stepFacts';
import {counted, wholeNumber} from '../../numberText';

const MOST_NAMES = 2;

const UPDATE = 'A step is one update of the parameters, with all forward and backward passes since the update before.';

/** What a step is, and what was odd about this one. */
const MEANING: Record<StepEnd, readonly string[]> = {
  update: [UPDATE],
  skipped: [UPDATE, 'This update was skipped, by a GradScaler or by the training loop.'],
  pass: ['Each step is one pass through the model: it was not ended by an update of the parameters.'],
  mark: ['Each step ends where the training calls watcher.step_done().'],
  unfinished: [UPDATE, 'The training ended, or paused, before the update of this one.'],
};

/** Texts for the time bar; each is null where there is nothing to say: one pass, one optimizer, an update. */
export interface StepTexts {
  optimizers: string | null;
  passes: string | null;
  end: string | null;
}

/** `chosen` is the optimizer whose steps alone are shown, `offered` those that can be chosen. */
export function stepTexts(facts: StepFacts | null, {chosen, offered}: {chosen: string | null; offered: readonly string[]}): StepTexts {
  if (facts === null) return {optimizers: null, passes: null, end: null};
  const {end, optimizers, passes, recorded} = facts;
  const isPlain = optimizers.length === 0 || (optimizers.length === 1 && (offered.length === 0 || optimizers[0] === chosen));
  return {
    optimizers: isPlain ? null : namesText(optimizers),
    passes: passes > 1 || recorded < passes ? passesText(passes, recorded) : null,
    end: end === 'skipped' ? 'update skipped' : end === 'unfinished' ? 'no update' : null,
  };
}

/** All of it in sentences, for a tooltip; empty where nothing is known. */
export function stepTitle(facts: StepFacts | null): string {
  if (facts === null) return '';
  const {end, optimizers, passes, recorded} = facts;
  const by = optimizers.length > 0 && `${end === 'skipped' ? 'Optimizer' : 'Made by'}: ${optimizers.slice(0, 8).join(', ')}${optimizers.length > 8 ? ', …' : ''}.`;
  return [...MEANING[end], by, passes > 1 && `${passesText(passes, recorded)}.`].filter(Boolean).join('\n');
}

function passesText(passes: number, recorded: number): string {
  const all = counted(passes, 'pass', 'passes');
  return recorded === passes ? all : `${wholeNumber(recorded)} of ${all} recorded`;
}

function namesText(names: readonly string[]): string {
  const rest = names.length - MOST_NAMES;
  return rest > 0 ? `${names.slice(0, MOST_NAMES - 1).join(', ')} and ${rest + 1} more` : names.join(', ');
}
