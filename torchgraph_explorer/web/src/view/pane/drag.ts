/** Dragging a node to the panels. */

import {batch, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import type {NodeKey} from '../../graph/keys';
import * as choices from '../state/choices';
import {pinNode} from '../pinning';

export interface Dragged {
  key: NodeKey;
  label: string;
  /** Of the pointer, in the window. */
  x: number;
  y: number;
  isOverPanels: boolean;
}

/** What is being dragged; null when nothing is. */
export const dragged: Signal<Dragged | null> = signal(null);

const THRESHOLD_PX = 6;

/** From a press on a node: follows the pointer, and pins the node when it is let go over the panels. */
export function startDrag(event: PointerEvent, key: NodeKey, label: string): void {
  if (event.button !== 0) return;
  const from = {x: event.clientX, y: event.clientY};
  const move = ({clientX: x, clientY: y}: PointerEvent): void => {
    if (dragged.value === null && Math.hypot(x - from.x, y - from.y) < THRESHOLD_PX) return;
    dragged.value = {key, label, x, y, isOverPanels: isOverPanels(x, y)};
  };
  const end = (): void => {
    removeEventListener('pointermove', move);
    removeEventListener('pointerup', drop);
    removeEventListener('pointercancel', end);
    removeEventListener('keydown', escape, true);
    if (dragged.value) swallowClick();
    dragged.value = null;
  };
  const drop = (): void => {
    if (dragged.value?.isOverPanels) pinAndSelect(key);
    end();
  };
  const escape = (pressed: KeyboardEvent): void => {
    if (pressed.key !== 'Escape') return;
    pressed.stopPropagation();
    end();
  };
  addEventListener('pointermove', move);
  addEventListener('pointerup', drop);
  addEventListener('pointercancel', end);
  addEventListener('keydown', escape, true);
}

function pinAndSelect(key: NodeKey): void {
  batch(() => {
    choices.selected.value = key; // so that the graph keeps it in sight when the panels take their room
    pinNode(key);
  });
}

function isOverPanels(x: number, y: number): boolean {
  return document.elementFromPoint(x, y)?.closest('[data-drop="panels"]') != null;
}

/** The click that follows the release is no click on what lies there. */
function swallowClick(): void {
  const swallow = (event: Event): void => event.stopPropagation();
  addEventListener('click', swallow, {capture: true, once: true});
  setTimeout(() => removeEventListener('click', swallow, {capture: true}), 0);
}
