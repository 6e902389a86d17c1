/** The drawing of the open call: nodes and edges, panned and zoomed. */

import './Canvas.css';

import {Fragment} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import type {Edge, Module, Node, PlacedEdge, PlacedNode} from '../../api/types';
import {nodeText} from '../../graph/facts';
import {familyOf} from '../../graph/families';
import {edgeKey, NARROWEST, WIDEST} from '../../graph/edges';
import {meet, nodeArea, shortened, splinePath} from '../../graph/geometry';
import {nodeIndex, nodeMeasure, nodeStates, openable, pinColours, scene, valueScale} from './scene';
import type {Scene} from './scene';
import {marks, originKeys, originText} from './marks';
import {wiresOf} from '../../graph/wires';
import {nodeKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {openCall} from '../state/navigate';
import {lookAtNode} from '../pinning';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {attachCamera, detail, sight} from './camera';
import {canvasKeys} from './canvasKeys';
import {GraphNode} from './GraphNode';
import type {GraphNodeProps} from './GraphNode';
import {camera, followPane, useLook} from './look';
import {areFlowsKnown, lookOf} from './flows';
import type {EdgeLook} from './flows';
import {findingsOfBox, markOfBox, openStack, standsFor, strips, timesOf} from './folding';
import {isFolded, isStack, nodesOf} from '../../graph/folds';
import {hover, hoverAt} from './hover';
import {led} from './led';
import {Stubs} from './Stubs';
import type {FindingMark} from '../../findings/places';
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
  useLayoutEffect(() => void (hover(null, null), (led.value = null)), [now?.key]); // a node that is no longer drawn is not left by the pointer
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
            <Stubs scene={now} sight={isLarge(now) ? sight.value : null} />
            <FollowedEdges scene={now} selected={selected} />
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
  const shown = layout.nodes.map((placed, at) => [placed, at] as const).filter(([placed]) => placed.node === selected || isNear(placed, now));
  const measure = nodeMeasure.value;
  const origin = originKeys.value.find((key) => nodeIndex.value.has(key));
  return (
    <g>
      {shown.map(([placed, at]) => {
        const node = graph.nodes[placed.node] as Node;
        const key = nodeKey(graph, placed.node);
        const canOpen = node.call !== null && openable.value.has(node.call);
        const module = node.call === null ? null : (graph.modules[graph.calls[node.call]?.module ?? 0] as Module);
        return (
          <GraphNode
            key={isFolded(placed) ? `loop ${at}` : placed.node}
            id={`node-${placed.node}`}
            placed={placed}
            nodeKey={key}
            kind={node.kind}
            family={module ? familyOf(module.class_name, canOpen) : 'other'}
            text={nodeText(graph, node)}
            isOpenable={canOpen}
            isSelected={selected !== undefined && nodesOf(placed).includes(selected)}
            pin={pinColours.value.get(key) ?? (isFolded(placed) ? pinOfAny(placed) : null)}
            calls={callsOf(placed, at)}
            heat={heatOf(placed.node)}
            mark={markOfBox(placed)}
            origin={origin !== undefined && standsFor(placed, origin) ? originText.value : null}
            findings={findingsOfBox(placed, key)}
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

/** The pin of one of the calls that a box stands for. */
function pinOfAny(placed: PlacedNode): number | null {
  return choices.pins.value.find(({key}) => standsFor(placed, key))?.colour ?? null;
}

/** Opens a stack; null for what is none. */
function openOf(placed: PlacedNode): (() => void) | null {
  const graph = scene.value?.graph;
  const [first] = nodesOf(placed);
  return graph && first !== undefined && isStack(graph, nodesOf(placed)) ? () => openStack(nodeKey(graph, first)) : null;
}

/** How often it is called, and what the strip below it shows. */
function callsOf(placed: PlacedNode, at: number): GraphNodeProps['calls'] {
  if (!isFolded(placed)) return null;
  const all = nodesOf(placed);
  return {count: all.length, times: timesOf(placed), turn: all.indexOf(placed.node), strip: strips.value.get(at) ?? [], onOpen: openOf(placed)};
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

/** Edges of a large drawing are drawn in so many widths, each at once. */
const CLASSES = 4;

function Edges({scene: now}: {scene: Scene}) {
  const edges = now.layout.edges.filter(({is_stub: isStub}) => !isStub);
  const lookAt = ({edge}: PlacedEdge): EdgeLook => lookOf(now.graph.edges[edge]);
  const hasGradient = ({edge}: PlacedEdge): boolean => now.graph.edges[edge]?.gradient ?? true;
  const isBad = (placed: PlacedEdge): boolean => carriesTrouble(now, placed);
  if (isLarge(now)) {
    const good = edges.filter((placed) => !isBad(placed));
    return (
      <g>
        <Wiring edges={good.filter((placed) => !hasGradient(placed))} hasGradient={false} />
        {[...byLook(good.filter(hasGradient), lookAt)].map(([name, [look, some]]) => (
          <Wiring key={name} edges={some} hasGradient look={look} />
        ))}
        {good.length < edges.length && <Wiring edges={edges.filter(isBad)} hasGradient isBad />}
      </g>
    );
  }
  return (
    <g>
      {edges.map((placed) => (
        <EdgePath key={placed.all?.[0] ?? placed.edge} placed={placed} hasGradient={hasGradient(placed)} isBad={isBad(placed)} look={lookAt(placed)} />
      ))}
      {edges.filter(hasGradient).map((placed) => (
        <EdgeTarget key={placed.edge} scene={now} placed={placed} />
      ))}
    </g>
  );
}

/** The edges of each look, whose widths are rounded. */
function byLook(edges: readonly PlacedEdge[], lookAt: (placed: PlacedEdge) => EdgeLook): Map<string, [EdgeLook, PlacedEdge[]]> {
  const found = new Map<string, [EdgeLook, PlacedEdge[]]>();
  for (const placed of edges) {
    const {width, isMissing} = lookAt(placed);
    const step = (WIDEST - NARROWEST) / CLASSES;
    const look = {width: width === null ? null : NARROWEST + step * Math.round((width - NARROWEST) / step), isMissing};
    const name = `${look.width} ${isMissing}`;
    const known = found.get(name);
    if (known) known[1].push(placed);
    else found.set(name, [look, [placed]]);
  }
  return found;
}

/** What can be pointed at and clicked of an edge: wider than it is drawn. */
function EdgeTarget({scene: {graph}, placed}: {scene: Scene; placed: PlacedEdge}) {
  const edge = graph.edges[placed.edge];
  if (!edge || !areFlowsKnown.value) return null;
  const key = edgeKey(graph, edge);
  return (
    <path
      class="edge-target"
      d={splinePath(placed.points)}
      data-edge={key}
      onPointerEnter={(event) => hoverAt(key, event)}
      onPointerLeave={() => hover(null, null)}
      onClick={() => lookAtNode(key)}
    />
  );
}

/** NaN or infinity comes out of the one end and into the other. */
function carriesTrouble({graph}: Scene, {edge, all = []}: PlacedEdge): boolean {
  const {gives, takes} = marks.value;
  const isBad = (one: number): boolean => {
    const ends = graph.edges[one];
    return ends !== undefined && gives.has(ends.source) && takes.has(ends.target);
  };
  return gives.size > 0 && (isBad(edge) || all.some(isBad));
}

/** The edges of a large drawing. From afar they have no arrows, which could not be seen. */
function Wiring({edges, hasGradient, isBad = false, look}: {edges: readonly PlacedEdge[]; hasGradient: boolean; isBad?: boolean; look?: EdgeLook}) {
  const {shared, tips} = wiresOf(edges, sight.value);
  const isFar = detail.value === 'none';
  const name = `edge${hasGradient ? '' : ' no-gradient'}${isBad ? ' is-bad' : ''}${look?.isMissing ? ' is-missing' : ''}`;
  const arrow = isBad ? 'url(#arrow-bad)' : 'url(#arrow)';
  const style = widthOf(look);
  return (
    <>
      <path class={name} style={style} d={isFar ? shared + tips.join('') : shared} />
      {!isFar && tips.map((tip) => <path key={tip} class={name} style={style} d={tip} marker-end={arrow} />)}
    </>
  );
}

/** The edges of the selected node, and those whose labels are pointed at, on top of the others. */
function FollowedEdges({scene: {graph, layout, key}, selected}: {scene: Scene; selected: number | undefined}) {
  const pointed = led.value?.scene === key ? led.value.edges : null;
  const touches = ({source, target}: Edge): boolean => selected !== undefined && (source === selected || target === selected);
  const shown = layout.edges.filter(({edge}) => touches(graph.edges[edge] as Edge) || pointed?.has(edge));
  return (
    <g class="selected-edges">
      {shown.map((placed) => (
        <EdgePath
          key={placed.edge}
          placed={placed}
          hasGradient={graph.edges[placed.edge]?.gradient ?? true}
          isSelected
          look={lookOf(graph.edges[placed.edge])}
        />
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
  look: EdgeLook;
}

function EdgePath({placed, hasGradient, isSelected = false, isBad = false, look}: EdgePathProps) {
  const states = `${isSelected ? ' is-selected' : ''}${isBad ? ' is-bad' : ''}${look.isMissing ? ' is-missing' : ''}`;
  const arrow = `arrow${isSelected ? '-selected' : isBad ? '-bad' : ''}${isWide(look) ? '-wide' : ''}`;
  const name = `edge${hasGradient ? '' : ' no-gradient'}${states}`;
  const points = isWide(look) ? shortened(placed.points, WIDE_ARROW) : placed.points;
  return <path class={name} style={widthOf(look)} d={splinePath(points)} marker-end={`url(#${arrow})`} />;
}

function widthOf(look: EdgeLook | undefined): {strokeWidth: string} | undefined {
  return look?.width == null ? undefined : {strokeWidth: `${Math.round(look.width * 10) / 10}px`};
}

/** Its tip would be hidden behind the line. */
function isWide(look: EdgeLook | undefined): boolean {
  return (look?.width ?? 0) > 3;
}

function Definitions() {
  return (
    <defs>
      {['arrow', 'arrow-selected', 'arrow-bad'].map((id) => (
        <Fragment key={id}>
          <Arrow id={id} />
          <Arrow id={`${id}-wide`} size={16} from={0.9} />
        </Fragment>
      ))}
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

/** Of the arrow of a wide line, which begins where the line ends: the line would hide its tip. */
const WIDE_ARROW = 14;

function Arrow({id, size = 7, from = 7.5}: {id: string; size?: number; from?: number}) {
  return (
    <marker id={id} viewBox="0 0 8 8" refX={from} refY="4" markerWidth={size} markerHeight={size} orient="auto" markerUnits="userSpaceOnUse">
      <path d="M0.5,1L7.5,4L0.5,7z" />
    </marker>
  );
}
