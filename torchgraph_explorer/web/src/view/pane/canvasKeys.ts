/** The keyboard in the graph pane. */

import {neighbour} from '../../graph/geometry';
import type {Direction} from '../../graph/geometry';
import {openable, scene} from './scene';
import {nodeKey} from '../../graph/keys';
import {leadOut, openCall} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {bringIntoSight, camera, fit, placedNode} from './look';
import {toggleStacks} from './folding';
import {togglePin} from '../pinning';
import {closeOver} from '../layout/sides';

const ARROWS: Record<string, Direction> = {ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down'};
const ZOOM = 1.3;

/** What each key does in the graph, wherever the focus is not in a control that uses the key itself. */
const ACTIONS: Record<string, () => void> = {
  Enter: openSelected,
  Backspace: leadOut,
  p: () => togglePin(),
  f: fit,
  s: toggleStacks,
  '+': () => camera.value?.zoomBy(ZOOM),
  '=': () => camera.value?.zoomBy(ZOOM),
  '-': () => camera.value?.zoomBy(1 / ZOOM),
  Escape: () => void (closeOver() || (choices.selected.value = null)),
};

export function canvasKeys(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const direction = ARROWS[event.key];
  const action = direction ? () => moveSelection(direction) : ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

function openSelected(): void {
  const call = shown.callIndex.value.get(choices.selected.value ?? '');
  if (call !== undefined && openable.value.has(call)) openCall(call);
}

/** Selects the nearest node in that direction; the first node when none is selected. */
function moveSelection(direction: Direction): void {
  const now = scene.value;
  if (!now) return;
  const from = placedNode(choices.selected.value);
  const first = [...now.layout.nodes].sort((a, b) => a.y - b.y)[0];
  const next = from ? neighbour(now.layout.nodes, from, direction) : first;
  if (!next) return;
  choices.selected.value = nodeKey(now.graph, next.node);
  bringIntoSight(next);
}
