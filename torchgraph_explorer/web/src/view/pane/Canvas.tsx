/** The drawing of the open call: nodes and edges, panned and zoomed. */

import './Canvas.css';

import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import type {Edge, Module, Node, PlacedEdge, PlacedNode} from '../../api/types';
import {nodeText} from '../../graph/facts';
import {familyOf} from '../../graph/families';
import {meet, nodeArea, splinePath} from '../../graph/geometry';
import {nodeIndex, nodeMeasure, nodeStates, openable, pinColours, scene, valueScale} from './scene';
import type {Scene} from './scene';
import {marks, originKeys, originText} from './marks';
import {wiresOf} from '../../graph/wires';
import {nodeKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {openCall} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {attachCamera, detail, sight} from './camera';
import {canvasKeys} from './canvasKeys';
import {GraphNode} from './GraphNode';
import type {GraphNodeProps} from './GraphNode';
import {camera, followPane, useLook} from './look';
import {hover} from './hover';
import type {FindingMark} from '../../findings/places';
import {findingMarksShown} from '../findings/found';
import {changeOf} from '../comparison/graph';
import {goToFinding} from '../findings/goToFinding';

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
  useLayoutEffect(() => hover(null, null), [now?.key]); // a node that is no longer drawn is not left by the pointer
  const selected = choices.selected.value === null ? undefined : nodeIndex.value.get(choices.selected.value);
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
      onClick={(event) => event.target === svg.current && (choices.selected.value = null)}
    >
      <Definitions />
      <g ref={content}>
        {now && (
          <g key={now.key} class="inside">
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
  const origin = originKeys.value.find((key) => nodeIndex.value.has(key));
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
            heat={heatOf(placed.node)}
            mark={marks.value.nodes.get(placed.node) ?? null}
            origin={key === origin ? originText.value : null}
            findings={findingMarksShown.value.calls.get(key) ?? null}
            change={changeOf(key)}
            isSigned={measure?.isSigned ?? false}
            isCount={measure?.isCount ?? false}
            onSelect={select}
            onOpen={open}
            onFinding={showFinding}
            onHover={hover}
          />
        );
      })}
    </g>
  );
}

function heatOf(node: number): GraphNodeProps['heat'] {
  const [scale, state] = [valueScale.value, nodeStates.value.get(node)];
  if (nodeMeasure.value === null) return undefined;
  if (state?.kind !== 'value') return state?.kind ?? null;
  return scale === null ? null : scale.at(state.value);
}

function select(key: NodeKey): void {
  choices.selected.value = key;
}

function showFinding({own, inside}: FindingMark): void {
  const [first] = [...own, ...inside];
  if (first) goToFinding(first);
}

function open(key: NodeKey): void {
  const call = shown.callIndex.value.get(key);
  if (call !== undefined && openable.value.has(call)) openCall(call);
}

function Edges({scene: now}: {scene: Scene}) {
  const {edges} = now.layout;
  const hasGradient = ({edge}: PlacedEdge): boolean => now.graph.edges[edge]?.gradient ?? true;
  const isBad = (placed: PlacedEdge): boolean => carriesTrouble(now, placed);
  if (isLarge(now)) {
    const good = edges.filter((placed) => !isBad(placed));
    return (
      <g>
        <Wiring edges={good.filter((placed) => !hasGradient(placed))} hasGradient={false} />
        <Wiring edges={good.filter(hasGradient)} hasGradient />
        {good.length < edges.length && <Wiring edges={edges.filter(isBad)} hasGradient isBad />}
      </g>
    );
  }
  return (
    <g>
      {edges.map((placed) => (
        <EdgePath key={placed.edge} placed={placed} hasGradient={hasGradient(placed)} isBad={isBad(placed)} />
      ))}
    </g>
  );
}

/** NaN or infinity comes out of the one end and into the other. */
function carriesTrouble({graph}: Scene, {edge}: PlacedEdge): boolean {
  const {gives, takes} = marks.value;
  const ends = graph.edges[edge];
  return ends !== undefined && gives.has(ends.source) && takes.has(ends.target);
}

/** The edges of a large drawing. From afar they have no arrows, which could not be seen. */
function Wiring({edges, hasGradient, isBad = false}: {edges: readonly PlacedEdge[]; hasGradient: boolean; isBad?: boolean}) {
  const {shared, tips} = wiresOf(edges, sight.value);
  const isFar = detail.value === 'none';
  const name = `edge${hasGradient ? '' : ' no-gradient'}${isBad ? ' is-bad' : ''}`;
  const arrow = isBad ? 'url(#arrow-bad)' : 'url(#arrow)';
  return (
    <>
      <path class={name} d={isFar ? shared + tips.join('') : shared} />
      {!isFar && tips.map((tip) => <path key={tip} class={name} d={tip} marker-end={arrow} />)}
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
  /** NaN or infinity goes along it. */
  isBad?: boolean;
}

function EdgePath({placed, hasGradient, isSelected = false, isBad = false}: EdgePathProps) {
  const name = `edge${hasGradient ? '' : ' no-gradient'}${isSelected ? ' is-selected' : ''}${isBad ? ' is-bad' : ''}`;
  const arrow = isSelected ? 'arrow-selected' : isBad ? 'arrow-bad' : 'arrow';
  return <path class={name} d={splinePath(placed.points)} marker-end={`url(#${arrow})`} />;
}

function Definitions() {
  return (
    <defs>
      <Arrow id="arrow" />
      <Arrow id="arrow-selected" />
      <Arrow id="arrow-bad" />
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <line class="hatch-line" x1="0" y1="0" x2="0" y2="6" />
      </pattern>
      <pattern id="dots" width="7" height="7" patternUnits="userSpaceOnUse">
        <circle class="dots-dot" cx="3.5" cy="3.5" r="1.1" />
      </pattern>
      <pattern id="hatch-bad" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <line class="hatch-bad-line" x1="0" y1="0" x2="0" y2="9" />
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
