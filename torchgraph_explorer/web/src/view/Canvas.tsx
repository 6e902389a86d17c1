/** The drawing of the open call: nodes and edges, panned and zoomed. */

import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import type {Edge, Module, Node, PlacedEdge, PlacedNode} from '../api/types';
import {nodeText} from '../graph/facts';
import {familyOf} from '../graph/families';
import {meet, nodeArea, splinePath} from '../graph/geometry';
import {nodeIndex, nodeMeasure, nodeValues, openable, pinColours, scene, valueScale} from '../graph/scene';
import type {Scene} from '../graph/scene';
import {wiresOf} from '../graph/wires';
import {nodeKey} from '../state/keys';
import type {NodeKey} from '../state/keys';
import {openCall} from '../state/navigate';
import * as store from '../state/store';
import {attachCamera, detail, sight} from './camera';
import {canvasKeys} from './canvasKeys';
import {GraphNode} from './GraphNode';
import {camera, followPane, useLook} from './look';
import {hover} from './hover';

export function Canvas() {
  const svg = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  useEffect(() => {
    const attached = attachCamera(svg.current as SVGSVGElement, content.current as SVGGElement);
    camera.value = attached;
    const watcher = new ResizeObserver(followPane(svg.current as SVGSVGElement, attached));
    watcher.observe(svg.current as SVGSVGElement);
    return () => {
      watcher.disconnect();
      attached.detach();
      camera.value = null;
    };
  }, []);
  useLook();
  const now = scene.value;
  useLayoutEffect(() => hover(null, null), [now?.place]); // a node that is no longer drawn is not left by the pointer
  const selected = store.selected.value === null ? undefined : nodeIndex.value.get(store.selected.value);
  return (
    <svg
      ref={svg}
      class="canvas"
      data-detail={detail.value}
      role="listbox"
      tabindex={0}
      aria-label="Graph. Arrow keys move, Enter opens, Backspace leads out, P pins."
      aria-activedescendant={selected === undefined ? undefined : `node-${selected}`}
      onKeyDown={canvasKeys}
      onClick={(event) => event.target === svg.current && (store.selected.value = null)}
    >
      <Definitions />
      <g ref={content}>
        {now && (
          <g key={now.place} class="inside">
            <Edges scene={now} />
            <SelectedEdges scene={now} selected={selected} />
            <Nodes scene={now} selected={selected} />
          </g>
        )}
      </g>
    </svg>
  );
}

const MANY_NODES = 150;
const MANY_EDGES = 300;

function isLarge({layout}: Scene): boolean {
  return layout.nodes.length > MANY_NODES || layout.edges.length > MANY_EDGES;
}

/** Of a large drawing only what is near is in the page: text costs time at every zoom, seen or not. */
function isNear(placed: PlacedNode, now: Scene): boolean {
  return !isLarge(now) || sight.value === null || meet(nodeArea(placed), sight.value);
}

function Nodes({scene: now, selected}: {scene: Scene; selected: number | undefined}) {
  const {graph, layout} = now;
  const shown = layout.nodes.filter((placed) => placed.node === selected || isNear(placed, now));
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

function Edges({scene: now}: {scene: Scene}) {
  const {edges} = now.layout;
  const hasGradient = ({edge}: PlacedEdge): boolean => now.graph.edges[edge]?.gradient ?? true;
  if (isLarge(now)) {
    return (
      <g>
        <Wiring edges={edges.filter((placed) => !hasGradient(placed))} hasGradient={false} />
        <Wiring edges={edges.filter(hasGradient)} hasGradient />
      </g>
    );
  }
  return (
    <g>
      {edges.map((placed) => (
        <EdgePath key={placed.edge} placed={placed} hasGradient={hasGradient(placed)} />
      ))}
    </g>
  );
}

/** The edges of a large drawing. From afar they have no arrows, which could not be seen. */
function Wiring({edges, hasGradient}: {edges: readonly PlacedEdge[]; hasGradient: boolean}) {
  const {shared, tips} = wiresOf(edges, sight.value);
  const isFar = detail.value === 'none';
  const name = `edge${hasGradient ? '' : ' no-gradient'}`;
  return (
    <>
      <path class={name} d={isFar ? shared + tips.join('') : shared} />
      {!isFar && tips.map((tip) => <path key={tip} class={name} d={tip} marker-end="url(#arrow)" />)}
    </>
  );
}

/** The edges of the selected node once more, on top of the others. */
function SelectedEdges({scene: {graph, layout}, selected}: {scene: Scene; selected: number | undefined}) {
  if (selected === undefined) return null;
  const touches = ({source, target}: Edge): boolean => source === selected || target === selected;
  const shown = layout.edges.filter((placed) => touches(graph.edges[placed.edge] as Edge));
  return (
    <g class="selected-edges">
      {shown.map((placed) => (
        <EdgePath key={placed.edge} placed={placed} hasGradient={graph.edges[placed.edge]?.gradient ?? true} isSelected />
      ))}
    </g>
  );
}

interface EdgePathProps {
  placed: PlacedEdge;
  hasGradient: boolean;
  /** One of its ends is selected. */
  isSelected?: boolean;
}

function EdgePath({placed, hasGradient, isSelected = false}: EdgePathProps) {
  const name = `edge${hasGradient ? '' : ' no-gradient'}${isSelected ? ' is-selected' : ''}`;
  return <path class={name} d={splinePath(placed.points)} marker-end={`url(#arrow${isSelected ? '-selected' : ''})`} />;
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
