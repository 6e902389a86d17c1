/** The drawing of the open call: nodes and edges, panned and zoomed. */

import {signal, useSignalEffect} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {Edge, Module, Node, PlacedEdge, PlacedNode} from '../api/types';
import {nodeText} from '../graph/facts';
import {familyOf} from '../graph/families';
import {centreOn, firstView, fitView, isInSight, meet, nodeArea, splineArea, splinePath} from '../graph/geometry';
import type {Area, View} from '../graph/geometry';
import {nodeIndex, nodeMeasure, nodeValues, openable, pinColours, scene, valueScale} from '../graph/scene';
import type {Scene} from '../graph/scene';
import {nodeKey} from '../state/keys';
import type {NodeKey} from '../state/keys';
import {goTo, openCall} from '../state/navigate';
import * as store from '../state/store';
import {attachCamera, detail, sight} from './camera';
import type {Camera} from './camera';
import {canvasKeys} from './canvasKeys';
import {GraphNode} from './GraphNode';
import {hover} from './tooltip';

/** The camera on show; null before the first drawing. */
export const camera = signal<Camera | null>(null);
/** Where each inside was last looked at. */
const views = new Map<string, View>();

export function Canvas() {
  const svg = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  useEffect(() => {
    const attached = attachCamera(svg.current as SVGSVGElement, content.current as SVGGElement);
    camera.value = attached;
    const watcher = new ResizeObserver(keepCentred(attached));
    watcher.observe(svg.current as SVGSVGElement);
    return () => {
      watcher.disconnect();
      attached.detach();
      camera.value = null;
    };
  }, []);
  useLook();
  const now = scene.value;
  const selected = store.selected.value === null ? undefined : nodeIndex.value.get(store.selected.value);
  return (
    <svg
      ref={svg}
      class="canvas"
      data-detail={detail.value}
      role="listbox"
      tabIndex={0}
      aria-label="Graph. Arrow keys move, Enter opens, Backspace leads out, P pins."
      aria-activedescendant={selected === undefined ? undefined : `node-${selected}`}
      onKeyDown={canvasKeys}
      onClick={(event) => event.target === svg.current && (store.selected.value = null)}
    >
      <Definitions />
      <g ref={content}>
        {now && (
          <g key={now.place} class="inside">
            <Edges scene={now} selected={selected} />
            <Nodes scene={now} selected={selected} />
          </g>
        )}
      </g>
    </svg>
  );
}

/** When the pane changes its size: a drawing that was not moved is laid into it anew, else its middle stays in the middle. */
function keepCentred(eye: Camera): () => void {
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
function useLook(): void {
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

const MANY_NODES = 150;

/** Of a large drawing only what is near is in the page: text costs time at every zoom, seen or not. */
function isNear(area: () => Area, {layout}: Scene): boolean {
  return layout.nodes.length <= MANY_NODES || sight.value === null || meet(area(), sight.value);
}

function Nodes({scene: now, selected}: {scene: Scene; selected: number | undefined}) {
  const {graph, layout} = now;
  const shown = layout.nodes.filter((placed) => placed.node === selected || isNear(() => nodeArea(placed), now));
  const measure = nodeMeasure.value;
  const scale = valueScale.value;
  const values = nodeValues.value;
  const heat = (node: number): number | null | undefined => {
    const value = values.get(node);
    return measure === null ? undefined : value === undefined || scale === null ? null : scale.at(value);
  };
  return (
    <g>
      {shown.map((placed) => {
        const node = graph.nodes[placed.node] as Node;
        const key = nodeKey(graph, placed.node);
        const canOpen = node.call !== null && openable.value.has(node.call);
        const module = node.call === null ? null : (graph.modules[graph.calls[node.call]?.module ?? 0] as Module);
        return (
          <GraphNode
            key={placed.node}
            id={`node-${placed.node}`}
            placed={placed}
            nodeKey={key}
            kind={node.kind}
            family={module ? familyOf(module.class_name, canOpen) : 'other'}
            text={nodeText(graph, node)}
            isOpenable={canOpen}
            isSelected={placed.node === selected}
            pin={pinColours.value.get(key) ?? null}
            heat={heat(placed.node)}
            isSigned={measure?.isSigned ?? false}
            onSelect={select}
            onOpen={open}
            onHover={hover}
          />
        );
      })}
    </g>
  );
}

function select(key: NodeKey): void {
  store.selected.value = key;
}

function open(key: NodeKey): void {
  const call = store.callIndex.value.get(key);
  if (call !== undefined && openable.value.has(call)) openCall(call);
}

function Edges({scene: now, selected}: {scene: Scene; selected: number | undefined}) {
  const {graph, layout} = now;
  const shown = layout.edges.filter(({points}) => isNear(() => splineArea(points), now));
  return (
    <g class="edges">
      {shown.map((placed) => {
        const edge = graph.edges[placed.edge] as Edge;
        const isSelected = selected !== undefined && (edge.source === selected || edge.target === selected);
        return <EdgePath key={placed.edge} placed={placed} hasGradient={edge.gradient} isSelected={isSelected} />;
      })}
    </g>
  );
}

interface EdgePathProps {
  placed: PlacedEdge;
  hasGradient: boolean;
  /** One of its ends is selected. */
  isSelected: boolean;
}

function EdgePath({placed, hasGradient, isSelected}: EdgePathProps) {
  const path = splinePath(placed.points);
  const name = `edge${hasGradient ? '' : ' no-gradient'}${isSelected ? ' is-selected' : ''}`;
  return <path class={name} d={path} marker-end={`url(#arrow${isSelected ? '-selected' : ''})`} />;
}

function Definitions() {
  return (
    <defs>
      <Arrow id="arrow" />
      <Arrow id="arrow-selected" />
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <line class="hatch-line" x1="0" y1="0" x2="0" y2="6" />
      </pattern>
    </defs>
  );
}

function Arrow({id}: {id: string}) {
  return (
    <marker id={id} viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse">
      <path d="M0.5,1L7.5,4L0.5,7z" />
    </marker>
  );
}

/** The placed node with that key, if it is on show. */
export function placedNode(key: NodeKey | null): PlacedNode | undefined {
  const node = key === null ? undefined : nodeIndex.value.get(key);
  return scene.value?.layout.nodes.find((one) => one.node === node);
}
