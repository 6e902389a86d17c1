/** Pinning a node also brings back the panels, wherever they were put away. */

import {batch} from '@preact/signals';
import type {NodeKey} from '../graph/keys';
import * as choices from './state/choices';
import {reveal} from './layout/sides';

/** Pins a node and shows the panels; does nothing when it is pinned already. */
export function pinNode(key: NodeKey): void {
  if (choices.isPinned(key)) return;
  batch(() => {
    choices.pin(key);
    reveal('panels');
  });
}

/** Pins a node, by default the selected one, or takes its pin away. */
export function togglePin(key: NodeKey | null = choices.selected.value): void {
  if (key === null) return;
  if (choices.isPinned(key)) choices.unpin(key);
  else pinNode(key);
}
