/** Where the graph pane looks: at what is opened, selected or asked for. */

import {signal, useSignalEffect} from '@preact/signals';
import {useRef} from 'preact/hooks';
import type {PlacedNode} from '../api/types';
import {centreOn, firstView, fitView, isInSight} from '../graph/geometry';
import type {View} from '../graph/geometry';
import {nodeIndex, scene} from '../graph/scene';
import type {Scene} from '../graph/scene';
import type {NodeKey} from '../state/keys';
import {goTo} from '../state/navigate';
import * as store from '../state/store';
import type {Camera} from './camera';

/** The camera on show; null before the first drawing. */
export const camera = signal<Camera | null>(null);
/** Where each inside was last looked at. */
const views = new Map<string, View>();

/** When the pane changes its size: a drawing that was not moved is laid into it anew, else its middle stays in the middle. */
export function keepCentred(eye: Camera): () => void {
  let before = eye.pane();
  return () => {
    const [now, pane] = [scene.peek(), eye.pane()];
    const {k, x, y} = eye.view();
    const by = (pane.width - before.width) / 2;
    before = pane;
    if (!now || pane.width === 0) return;
    if (!eye.isMoved() && store.selected.peek() === null) eye.show(firstView(now.layout, pane));
    else if (by !== 0) eye.show({k, x: x + by, y});
  };
}

/** Looks at an inside when it is opened, and at a node when someone asks for it. */
export function useLook(): void {
  const shown = useRef('');
  useSignalEffect(() => {
    const now = scene.value;
    const eye = camera.value;
    const key = store.wanted.value?.key ?? null;
    if (!now || !eye) return;
    const before = shown.current;
    if (before !== now.place) {
      if (before) views.set(before, eye.view());
      shown.current = now.place;
      eye.show(views.get(now.place) ?? firstView(now.layout, eye.pane()));
    }
    if (key !== null) look(eye, now, key, before === now.place);
    else if (before !== now.place) keepInSight(eye, now);
  });
}

/** A node that is selected when an inside is opened, by leading out or by a link, is in sight. */
function keepInSight(eye: Camera, {layout}: Scene): void {
  const key = store.selected.peek();
  const placed = layout.nodes.find(({node}) => node === (key === null ? undefined : nodeIndex.peek().get(key)));
  if (placed && !isInSight(placed, eye.pane(), eye.view())) eye.show(centreOn(placed, eye.pane(), eye.view()));
}

function look(eye: Camera, {layout}: Scene, key: NodeKey, isSmooth: boolean): void {
  const node = nodeIndex.peek().get(key);
  const placed = layout.nodes.find((one) => one.node === node);
  if (placed) {
    eye.show(centreOn(placed, eye.pane(), eye.view()), isSmooth);
    store.wanted.value = null;
    store.selected.value = key;
  } else if (node === undefined) store.wanted.value = null;
  else goTo(key);
}

/** Shows the whole drawing. */
export function fit(): void {
  const eye = camera.value;
  if (eye && scene.value) eye.show(fitView(scene.value.layout, eye.pane()), true);
}

/** The placed node with that key, if it is on show. */
export function placedNode(key: NodeKey | null): PlacedNode | undefined {
  const node = key === null ? undefined : nodeIndex.value.get(key);
  return scene.value?.layout.nodes.find((one) => one.node === node);
}
