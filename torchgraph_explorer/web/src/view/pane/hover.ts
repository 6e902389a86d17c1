/** Which node or edge the pointer rests on. */

import {signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import type {NodeKey} from '../../graph/keys';

export interface Hovered {
  key: NodeKey;
  /** Of the node, in the window; of an edge, where it was pointed at. */
  box: DOMRect;
}

const REST_MS = 350;

export const hovered: Signal<Hovered | null> = signal(null);
let timer: ReturnType<typeof setTimeout> | undefined;

/** The pointer has entered a node, or with null left it. */
export function hover(key: NodeKey | null, element: Element | null): void {
  clearTimeout(timer);
  if (key === null || element === null) hovered.value = null;
  else timer = setTimeout(() => (hovered.value = {key, box: element.getBoundingClientRect()}), REST_MS);
}

/** The pointer has entered an edge, whose box says nothing of where. */
export function hoverAt(key: NodeKey, {clientX, clientY}: PointerEvent): void {
  clearTimeout(timer);
  timer = setTimeout(() => (hovered.value = {key, box: new DOMRect(clientX, clientY, 0, 0)}), REST_MS);
}
