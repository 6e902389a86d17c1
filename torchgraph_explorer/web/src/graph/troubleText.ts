/** What is said of the first NaN or infinity. */

import {stepName, wholeNumber} from '../numberText';
import type {FirstNonFinite, NonFinite} from '../api/types';
import {tensorText} from './nonfinite';

/** `NaN at step 6`, which is the first, and `stage1.0.conv1 (call 1), output`; the place is empty where it is not known. */
export function firstText({step, tensor}: FirstNonFinite, className: string): {what: string; place: string} {
  const kind = tensor === null ? 'NaN or infinity' : tensor.nan > 0 ? 'NaN' : 'infinity';
  const what = `${kind} at ${stepName(step)}`;
  if (tensor === null) return {what, place: ''};
  const module = tensor.module === '' ? className : tensor.module;
  const call = tensor.role === 'param' ? '' : ` (call ${(tensor.call ?? 0) + 1})`;
  return {what, place: `${module}${call}, ${tensorText(tensor)}`};
}

/** How many elements and steps it is, and where else. */
export function troubleTitle(known: NonFinite, steps: readonly number[]): string {
  const {first, bad, frames, others, is_complete: isComplete} = known;
  const count = bad.reduce((sum, [, , inStretch]) => sum + inStretch, 0);
  const tensor = first?.tensor ?? null;
  return [
    tensor && elementsText(tensor),
    `${wholeNumber(count)} of ${wholeNumber(frames)} logged steps have NaN or infinity${isComplete ? '' : ' so far'}.`,
    others.length > 0 && `So ${others.length === 1 ? 'has' : 'have'} ${others.join(', ')}.`,
    first && !steps.includes(first.step) && `Step ${wholeNumber(first.step)} is not on this page.`,
    'Press to go there.',
  ]
    .filter(Boolean)
    .join('\n');
}

function elementsText({nan, infinite, count}: {nan: number; infinite: number; count: number}): string {
  const what = [nan > 0 && `${wholeNumber(nan)} NaN`, infinite > 0 && `${wholeNumber(infinite)} infinite`].filter(Boolean);
  return `${what.join(' and ')} of ${wholeNumber(count)} elements.`;
}
