/** Where the graph pane looks: at what is opened, selected or asked for. The user's own view is kept unless they ask for another. */

import {signal} from '@preact/signals';
import {useRef} from 'preact/hooks';
import type {PlacedNode} from '../../api/types';
import {useReaction} from '../../charts/derived';
import {fit as fitted, isInSight, reveal, seen, viewFor} from '../../graph/views';
import type {Subject, Window} from '../../graph/views';
import {BADGE_TOP, meet, nodeArea} from '../../graph/geometry';
import type {Area, Box} from '../../graph/geometry';
import {nodesOf} from '../../graph/folds';
import {showCallOf} from './folding';
import {nodeIndex, scene} from './scene';
import type {Scene} from './scene';
import {callKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {goTo, isWhole} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import type {Camera} from './camera';

/** The camera on show; null before the first drawing. */
export const camera = signal<Camera | null>(null);

/** The node that was selected last in what is open: even when it is no more, one goes on from there. */
let last: NodeKey | null = null;

/** Looks at an inside when it is opened, and at a node when someone asks for it. */
export function useLook(): void {
  const shown = useRef<{choice: string; scene: Scene} | null>(null);
  useReaction(() => {
    last = choices.selected.value ?? last;
  }, []);
  useReaction(() => {
    if (scene.value !== null && choices.selected.value !== null) showCallOf(choices.selected.value);
  }, []);
  useReaction(() => {
    const [now, eye] = [scene.value, camera.value];
    const key = choices.wanted.value?.key ?? null;
    if (!now || !eye) return;
    const [choice, before] = [choiceOf(now), shown.current];
    shown.current = {choice, scene: now};
    if (before?.choice !== choice) open(eye, now);
    else if (before.scene !== now) settle(eye, now);
    if (key !== null) look(eye, now, key, before?.choice === choice);
  }, []);
}

/** What the user chose to see. The graph of a step may be another one: that is still the same choice. */
function choiceOf({graph, inside}: Scene): string {
  const open = inside === null ? null : callKey(graph, inside);
  return JSON.stringify([choices.run.peek(), choices.model.peek(), shown.data.peek()?.epoch, choices.graphChoice.peek(), choices.areCallsSingle.peek(), open]);
}

function open(eye: Camera, now: Scene): void {
  last = null;
  eye.show(viewFor(subjectOf(now), windowOf(eye)));
}

/** The drawing has changed by itself: it is of another step, or shapes have become known. */
function settle(eye: Camera, now: Scene): void {
  const {width, height} = eye.pane();
  const isLost = !meet(seen(areaOf(now), eye.view()), {left: 0, top: 0, right: width, bottom: height});
  if (!eye.isMoved() || isLost) eye.show(viewFor(subjectOf(now), windowOf(eye)));
}

function look(eye: Camera, now: Scene, key: NodeKey, isSmooth: boolean): void {
  const node = nodeIndex.peek().get(key);
  const placed = node === undefined ? undefined : now.layout.nodes.find((one) => nodesOf(one).includes(node));
  if (placed) {
    showCallOf(key);
    show(eye, now, placed, isSmooth);
    choices.wanted.value = null;
    choices.selected.value = key;
  } else {
    if (node === undefined || isWhole(key)) choices.wanted.value = null;
    if (node !== undefined) goTo(key);
  }
}

/** Frames the drawing for a node; nothing moves where the node is in sight and can be read. */
function show(eye: Camera, now: Scene, placed: PlacedNode, isSmooth: boolean): void {
  const [subject, window, view] = [{drawing: areaOf(now), focus: nodeArea(placed)}, windowOf(eye), eye.view()];
  if (reveal(subject, window, view) !== view) eye.show(viewFor(subject, window), isSmooth);
}

/** Brings a node into sight that the user has walked to. The user's scale is kept if the node can be read. */
export function bringIntoSight(placed: PlacedNode): void {
  const [eye, now] = [camera.peek(), scene.peek()];
  if (!eye || !now) return;
  const view = reveal({drawing: areaOf(now), focus: nodeArea(placed)}, windowOf(eye), eye.view());
  if (view !== eye.view()) eye.follow(view, true);
}

/** Shows the whole drawing. */
export function fit(): void {
  const eye = camera.value;
  if (eye && scene.value) eye.show(fitted(areaOf(scene.value), windowOf(eye)), true);
}

/** What there was room in when we looked last. */
let lastWindow: Window = {pane: {width: 0, height: 0}, covered: []};

/**
 * There is more or less room than before: what we chose to show is laid into it anew; the user's own view is kept, but what
 * was seen of the node that was asked for stays in sight.
 */
function relook(eye: Camera, isSmooth: boolean): void {
  const now = scene.peek();
  const [before, window] = [lastWindow, windowOf(eye)];
  lastWindow = window;
  if (!now || window.pane.width === 0 || window.pane.height === 0) return;
  const subject = subjectOf(now);
  if (!eye.isMoved()) return eye.show(viewFor(subject, window), isSmooth);
  const isAsked = placedAsked() !== undefined;
  if (isAsked && isInSight(subject.focus, before, eye.view())) eye.follow(reveal(subject, window, eye.view()), isSmooth);
}

/** To be called when something lies over the graph, or no longer does. */
export function coverChanged(): void {
  const eye = camera.peek();
  if (eye) relook(eye, true);
}

const CONTINUOUS_MS = 120;

/** To be called when the pane has another size or place. */
export function followPane(svg: SVGSVGElement, eye: Camera): () => void {
  let before = svg.getBoundingClientRect();
  lastWindow = windowOf(eye);
  let changed = -Infinity;
  return () => {
    const rect = svg.getBoundingClientRect();
    const isSame = rect.width === before.width && rect.height === before.height && rect.left === before.left;
    if (rect.width === 0 || rect.height === 0 || isSame) return;
    const isAtOnce = performance.now() - changed > CONTINUOUS_MS && before.width > 0; // a splitter that is dragged moves on and on
    changed = performance.now();
    if (eye.isMoved()) eye.shift((rect.width - before.width) / 2, 0);
    else eye.shift(before.left - rect.left, before.top - rect.top);
    relook(eye, isAtOnce);
    before = rect;
  };
}

function subjectOf(now: Scene): Subject {
  const placed = placedAsked();
  return {drawing: areaOf(now), focus: placed ? nodeArea(placed) : beginningOf(now)};
}

/** The node that must stay in sight: the selected one, else the one that was last, else the one that was pinned last. */
function placedAsked(): PlacedNode | undefined {
  const keys = [choices.selected.peek(), last, choices.pins.peek().at(-1)?.key ?? null];
  return keys.map(placedNode).find((placed) => placed !== undefined);
}

/** A drawing begins at its inputs, at the top. */
function beginningOf({layout: {nodes}}: Scene): Area {
  const areas = nodes.map(nodeArea);
  const top = Math.min(...areas.map((area) => area.top));
  const first = areas.filter((area) => area.top <= top + 1);
  const [left, right] = [Math.min(...first.map((area) => area.left)), Math.max(...first.map((area) => area.right))];
  return {left, top: 0, right, bottom: Math.max(...first.map((area) => area.bottom))};
}

/** Badges of the uppermost nodes stand out above the drawing. */
function areaOf({layout: {width, height, nodes}}: Scene): Area {
  const top = nodes.reduce((least, node) => Math.min(least, nodeArea(node).top + BADGE_TOP), 0);
  return {left: 0, top, right: width, bottom: height};
}

function windowOf(eye: Camera): Window {
  return {pane: eye.pane(), covered: covers()};
}

/** What lies over the graph, in the pixels of its pane. */
function covers(): Area[] {
  const pane = document.querySelector('.canvas')?.getBoundingClientRect();
  if (!pane) return [];
  return [...document.querySelectorAll('[data-covers="graph"]')]
    .map((one) => one.getBoundingClientRect())
    .map(({left, top, right, bottom}) => ({left: left - pane.left, top: top - pane.top, right: right - pane.left, bottom: bottom - pane.top}))
    .filter((area) => isWithin(area, pane));
}

function isWithin(area: Area, {width, height}: Box): boolean {
  return meet(area, {left: 1, top: 1, right: width - 1, bottom: height - 1});
}

/** The placed node with that key, if it is on show. */
export function placedNode(key: NodeKey | null): PlacedNode | undefined {
  const node = key === null ? undefined : nodeIndex.peek().get(key);
  return node === undefined ? undefined : scene.peek()?.layout.nodes.find((one) => nodesOf(one).includes(node));
}
