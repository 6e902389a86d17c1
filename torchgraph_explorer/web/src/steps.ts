/** Looking up a step among the recorded ones. A frame is what was recorded at one step; frames are numbered from 0 in the order of their steps. */

/** The number of the frame at `step`, or of the last one before it; the first one when all are later; null without frames. */
export function frameAtStep(steps: ArrayLike<number>, step: number): number | null {
  if (steps.length === 0) return null;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as number) <= step) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The step to choose for frame number `frame`, which is kept within those there are: null, which follows the latest, for the last one. */
export function stepToChoose(steps: ArrayLike<number>, frame: number): number | null {
  return frame >= steps.length - 1 ? null : (steps[Math.max(0, frame)] ?? null);
}
