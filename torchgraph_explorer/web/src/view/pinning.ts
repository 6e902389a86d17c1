/** Pinning a node also brings back the panels, wherever they were put away. */

import {batch} from '@preact/signals';
import type {NodeKey} from '../graph/keys';
import * as store from './state/choices';
import {reveal} from './layout/sides';

/** Pins a node and shows the panels; does nothing when it is pinned already. */
export function pinNode(key: NodeKey): void {
  if (store.isPinned(key)) return;
  batch(() => {
    store.pin(key);
    reveal('panels');
  });
}

/** Pins a node, by default the selected one, or takes its pin away. */
export function togglePin(key: NodeKey | null = store.selected.value): void {
  if (key === null) return;
  if (store.isPinned(key)) store.unpin(key);
  else pinNode(key);
}
