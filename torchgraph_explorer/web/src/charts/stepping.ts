/** Choosing a step by keyboard, the same on every strip. */

import {stepToChoose} from '../steps';
import type {Setting} from './setting';

const PAGE = 10;

const MOVES: Record<string, (now: number, last: number) => number> = {
  ArrowLeft: (now) => now - 1,
  ArrowRight: (now) => now + 1,
  PageUp: (now) => now + PAGE,
  PageDown: (now) => now - PAGE,
  Home: () => 0,
  End: (_, last) => last,
};

/** Moves to another frame if the key is one of those that do. The last frame follows the latest again. */
export function stepByKey(event: KeyboardEvent, {frame, frames, choose}: Setting): void {
  const move = MOVES[event.key];
  const now = frame.value;
  if (move === undefined || now === null || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const {steps} = frames.value;
  choose(stepToChoose(steps, move(now, steps.length - 1)));
}
