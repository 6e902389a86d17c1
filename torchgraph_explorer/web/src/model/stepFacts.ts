/** How a step ended, and which passes belonged to it. */

import type {StepEnd} from '../api/types';
import type {ModelData} from './data';

export interface StepFacts {
  end: StepEnd;
  /** Those that made the update; empty if they are not known. */
  optimizers: readonly string[];
  /** Forward passes that belonged to the step. */
  passes: number;
  recorded: number;
}

/** The facts of a frame's step; null where they are not known. */
export function stepFacts({kinds, kindIds, passes: counts}: ModelData, frame: number): StepFacts | null {
  const kind = kinds.find((one) => one.kind === kindIds[frame]);
  if (kind === undefined) return null;
  const [passes, recorded] = counts[frame] ?? [0, 0];
  return {end: kind.end, optimizers: kind.optimizers, passes, recorded};
}

/** Which frames are of an update that was skipped, ascending. */
export function skippedFrames({kinds, kindIds}: Pick<ModelData, 'kinds' | 'kindIds'>): number[] {
  const skipped = new Set<number | null>(kinds.filter(({end}) => end === 'skipped').map(({kind}) => kind));
  return skipped.size === 0 ? [] : kindIds.flatMap((kind, frame) => (skipped.has(kind) ? [frame] : []));
}
