/** Pinning a node also brings back the panels, wherever they were put away. */

import {batch} from '@preact/signals';
import type {NodeKey} from '../graph/keys';
import * as choices from './state/choices';
import {reveal} from './layout/sides';

/** Pins a node and shows the panels, or keeps the panel that it has. */
export function pinNode(key: NodeKey): void {
  open(key, choices.pin);
}

/** Shows the panel of a node in place of the one that was looked at before. */
export function lookAtNode(key: NodeKey): void {
  open(key, choices.pinInPassing);
}

function open(key: NodeKey, pin: (key: NodeKey) => void): void {
  const isNew = !choices.isPinned(key);
  batch(() => {
    pin(key);
    if (isNew) reveal('panels');
  });
}

/** Pins a node, by default the selected one, or takes its pin away. */
export function togglePin(key: NodeKey | null = choices.selected.value): void {
  if (key === null) return;
  if (choices.isKept(key)) choices.unpin(key);
  else pinNode(key);
}
