/** Choosing a step by keyboard, the same on every strip. */

import {currentFrame, data, frame} from '../view/state/choices';

const PAGE = 10;

const MOVES: Record<string, (now: number, last: number) => number> = {
  ArrowLeft: (now) => now - 1,
  ArrowRight: (now) => now + 1,
  PageUp: (now) => now + PAGE,
  PageDown: (now) => now - PAGE,
  Home: () => 0,
  End: (_, last) => last,
};

/** Moves the chosen step if the key is one of those that do. Choosing the last one follows the latest again. */
export function stepByKey(event: KeyboardEvent): void {
  const move = MOVES[event.key];
  const now = currentFrame.value;
  if (move === undefined || now === null || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const last = data.value!.steps.length - 1;
  chooseFrame(move(now, last));
}

/** Chooses a frame, kept between the first and the last; the last one follows the latest. */
export function chooseFrame(wanted: number): void {
  const last = (data.value?.steps.length ?? 0) - 1;
  frame.value = wanted >= last ? null : Math.max(0, wanted);
}
