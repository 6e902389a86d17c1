/** Which named tensors are computed from which: the graph in which a tensor is chosen. */

import './Dependencies.css';

import {useSignal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';
import type {TensorGraph} from '../../api/tensors';
import {between, BOX, curve, drawingOf, linksAmong, linksAt, linksOf, scaleOf} from '../../tensors/dependencies';
import type {Drawing, Link, Links, Scale} from '../../tensors/dependencies';
import {idOf} from '../../tensors/names';
import {IconButton} from '../controls/Icon';
import {zoomWithin} from '../../tensors/choice';
import {fittingEnd} from '../pane/textWidth';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {useSize} from '../useSize';
import {useGraph} from './parts';
import * as store from './store';

const DEAD_END_PX = 48;

export function Dependencies(): JSX.Element {
  const step = store.step.value ?? store.kept.value.steps.at(-1) ?? null;
  const model = shown.model.value?.name ?? null;
  const {value: graph, problem} = useGraph(model, step, store.record.value);
  if (problem !== null) return <p class="tensor-problem">{problem}</p>;
  if (graph === null) return <p class="tensor-empty">Loading …</p>;
  return <GraphOfTensors graph={graph} />;
}

/** Below the boxes, for the scroll bar. */
const PADDING = 10;

/** What is known of a graph, whatever is chosen in it. */
interface Known {
  graph: TensorGraph;
  links: Links;
  drawing: Drawing;
}

function GraphOfTensors({graph}: {graph: TensorGraph}): JSX.Element {
  const known = useMemo(() => {
    const links = linksOf(graph);
    return {graph, links, drawing: drawingOf(graph, links)};
  }, [graph]);
  const words = useSignal('');
  const [box, room] = useSize();
  const {node: key, pathTo, areAllShown, graphZoom: zoom} = choices.tensors.value;
  const scale = scaleOf(zoom, known.drawing, {...room, height: Math.max(0, room.height - PADDING)});
  const selected = selectedNode(graph, key);
  const end = graph.nodes.findIndex((one) => one.key === pathTo);
  const path = selected >= 0 && end >= 0 ? pathOf(known.links, selected, end) : null;
  const lines = useMemo(() => linesOf(known, selected, path, areAllShown), [known, selected, pathTo, areAllShown, store.current.value]);
  return (
    <div class="dependencies">
      <Bar known={known} words={words} scale={scale} path={path} selected={selected} end={end} />
      <Boxes known={known} words={words.value} box={box} scale={scale} selected={selected} path={path} lines={lines} />
    </div>
  );
}

/** Number of the chosen node; of that which has the tensor on show; -1 without. */
function selectedNode({nodes, tensors}: TensorGraph, key: string | null): number {
  const chosen = nodes.findIndex((one) => one.key === key);
  if (chosen >= 0) return chosen;
  const id = store.current.value?.id;
  return nodes.findIndex((one) => one.tensors.some((tensor) => idOf(tensors[tensor] as TensorGraph['tensors'][number]) === id));
}

function pathOf(links: Links, from: number, to: number): Set<number> {
  const forth = between(links, from, to);
  return forth.size > 0 ? forth : between(links, to, from);
}

function linesOf({graph}: Known, selected: number, path: Set<number> | null, areAllShown: boolean): Link[] {
  if (path !== null) return linksAmong(graph, path);
  if (areAllShown) return linksAmong(graph, null);
  if (selected < 0) return [];
  const id = store.current.value?.id;
  const own = graph.nodes[selected]?.tensors.find((tensor) => idOf(graph.tensors[tensor] as TensorGraph['tensors'][number]) === id);
  return linksAt(graph, selected, own ?? null);
}

interface BarProps {
  known: Known;
  words: Signal<string>;
  scale: Scale;
  path: Set<number> | null;
  selected: number;
  end: number;
}

function Bar({known: {graph}, words, scale, path, selected, end}: BarProps): JSX.Element {
  const {areAllShown, graphZoom} = choices.tensors.value;
  const enlarge = (by: number): void => store.change({graphZoom: zoomWithin(Math.min(scale.x, scale.y) * by)});
  const find = (event: KeyboardEvent): void => {
    const found = graph.nodes.find(({name}) => matches(name, words.value));
    if (event.key === 'Enter' && found !== undefined) selectNode(graph, found.key);
  };
  return (
    <div class="tensor-bar dependencies-bar">
      <input type="search" aria-label="Find a node" placeholder="Find a node" value={words.value} onInput={({currentTarget}) => (words.value = currentTarget.value)} onKeyDown={find} />
      <label class="dependencies-all">
        <input type="checkbox" checked={areAllShown} onChange={() => store.change({areAllShown: !areAllShown})} /> all links
      </label>
      {path === null ? (
        <span class="dim dependencies-hint">Shift-click, or Shift+Enter, on a second node shows the paths to it.</span>
      ) : (
        <>
          <span role="status">
            {path.size === 0 ? 'No path leads' : `${path.size} nodes lie on paths`} between {graph.nodes[selected]?.name} and {graph.nodes[end]?.name}
          </span>
          <button type="button" class="button" onClick={() => store.change({pathTo: null})}>
            No paths
          </button>
        </>
      )}
      {graph.edges.length === 0 && <span class="dim">Which tensors were computed from which was not recorded.</span>}
      <Kinds graph={graph} />
      <div class="spacer" />
      <span class="dependencies-zoom">
        <IconButton icon="minus" label="Smaller" onPress={() => enlarge(1 / 1.25)} />
        <IconButton icon="plus" label="Larger" onPress={() => enlarge(1.25)} />
        <IconButton icon="fit" label="The whole graph (f)" isPressed={graphZoom === 'fit'} onPress={fitGraph} />
      </span>
    </div>
  );
}

/** Shows the whole graph; from there, at full size. */
export function fitGraph(): void {
  store.change({graphZoom: choices.tensors.value.graphZoom === 'fit' ? 1 : 'fit'});
}

const KIND_NAMES = {input: 'input', parameter: 'parameter', intermediate: 'intermediate', target: 'target', loss: 'loss'} as const;

function Kinds({graph}: {graph: TensorGraph}): JSX.Element {
  const kinds = [...new Set(graph.nodes.map(({kind}) => kind))];
  return (
    <span class="dependencies-kinds">
      {kinds.map((kind) => (
        <span key={kind}>
          <i class={`tensor-kind is-${kind}`} /> {KIND_NAMES[kind]}
        </span>
      ))}
    </span>
  );
}

function matches(name: string, words: string): boolean {
  return words.trim() !== '' && name.toLowerCase().includes(words.trim().toLowerCase());
}

/** Shows a tensor of the node, if one was kept. */
function selectNode(graph: TensorGraph, key: string, isPath = false): void {
  const {tensors} = store;
  if (isPath) return store.change({pathTo: key});
  const node = graph.nodes.find((one) => one.key === key);
  const ids = (node?.tensors ?? []).map((tensor) => idOf(graph.tensors[tensor] as TensorGraph['tensors'][number]));
  const id = ids.find((one) => tensors.value.has(one));
  if (id !== undefined) store.openOfItsCall(id);
  store.change({node: key, pathTo: null});
}

interface BoxesProps {
  known: Known;
  words: string;
  box: RefObject<HTMLDivElement>;
  scale: Scale;
  selected: number;
  path: Set<number> | null;
  lines: readonly Link[];
}

function Boxes({known: {graph, links, drawing}, words, box, scale, selected, path, lines}: BoxesProps): JSX.Element {
  const {width, height, places} = drawing;
  const wanted = words === '' ? selected : graph.nodes.findIndex(({name}) => matches(name, words));
  useEffect(() => {
    const place = places[wanted];
    const pane = box.current;
    if (place === undefined || pane === null) return;
    const [x, y] = [place.x * scale.x, place.y * scale.y];
    const isInSight = x >= pane.scrollLeft && x + BOX.width * scale.x <= pane.scrollLeft + pane.clientWidth && y >= pane.scrollTop && y + BOX.height * scale.y <= pane.scrollTop + pane.clientHeight;
    if (!isInSight) pane.scrollTo({left: x - pane.clientWidth / 2, top: y - pane.clientHeight / 2});
  }, [wanted, scale.x, scale.y, places]);
  const press = (event: KeyboardEvent): void => {
    const next = besideNode({graph, links, drawing}, selected, event.key);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    selectNode(graph, (graph.nodes[next] as TensorGraph['nodes'][number]).key);
    box.current?.querySelector<SVGGElement>(`[data-node="${next}"]`)?.focus();
  };
  return (
    <div class="dependencies-box" ref={box} onKeyDown={press} style={{flexBasis: `${height * Math.max(1, scale.y) + PADDING}px`}}>
      <svg
        width={width * scale.x}
        height={height * scale.y}
        viewBox={`0 0 ${width * scale.x} ${height * scale.y}`}
        data-small={!scale.isLegible || undefined}
        role="group"
        aria-label="Dependency graph of tensors"
      >
        <g transform={`scale(${scale.x} ${scale.y})`}>
          {/* Below the nodes, so that a link does not strike out a name on its way. */}
          {lines.map(({from, to, isOwn, gradient}) => (
            <path key={`${from} ${to}`} class="dependencies-link" data-thin={!isOwn || undefined} data-cut={!gradient || undefined} d={curve(drawing.places[from]!, drawing.places[to]!)} />
          ))}
          {graph.nodes.map((node, i) => (
            <Node key={node.key} number={i} {...{graph, links, drawing, selected, path, words}} />
          ))}
        </g>
      </svg>
    </div>
  );
}

/** The node that an arrow key leads to: along links to the sides, else within the column. */
function besideNode({links, drawing: {places}}: Known, selected: number, key: string): number | null {
  const here = places[selected];
  if (here === undefined || !/^Arrow/.test(key)) return null;
  const candidates = {
    ArrowLeft: [...(links.before[selected] ?? [])],
    ArrowRight: [...(links.after[selected] ?? [])],
    ArrowUp: [...places.keys()].filter((i) => places[i]!.x === here.x && places[i]!.y < here.y),
    ArrowDown: [...places.keys()].filter((i) => places[i]!.x === here.x && places[i]!.y > here.y),
  }[key];
  const near = (i: number): number => Math.abs(places[i]!.y - here.y) + Math.abs(places[i]!.x - here.x);
  return (candidates ?? []).sort((a, b) => near(a) - near(b))[0] ?? null;
}

interface NodeProps extends Known {
  number: number;
  selected: number;
  path: Set<number> | null;
  words: string;
}

function Node({number, graph, links, drawing, selected, path, words}: NodeProps): JSX.Element {
  const {key, name, kind, call, tensors} = graph.nodes[number]!;
  const {x, y} = drawing.places[number]!;
  const [before, after] = [links.before[number]!, links.after[number]!];
  const isDeadEnd = kind === 'parameter' && after.size === 0 && graph.edges.length > 0;
  const isKept = tensors.some((tensor) => store.tensors.value.has(idOf(graph.tensors[tensor]!)));
  const named = name.startsWith(':') ? `the model${name}` : name; // what the model itself is given and returns
  const title = call === null || call === 0 ? named : `${named} #${call + 1}`;
  const isDim = (words.trim() !== '' && !matches(name, words)) || (path !== null && !path.has(number));
  const relation = number === selected ? 'selected' : before.has(selected) ? 'successor' : after.has(selected) ? 'predecessor' : undefined;
  const facts = [KIND_NAMES[kind], relation, isDeadEnd && 'nothing that is named here is computed from it', !isKept && 'not kept'].filter(Boolean).join(', ');
  const choose = (event: MouseEvent | KeyboardEvent): void => selectNode(graph, key, event.shiftKey);
  return (
    <g
      class={`dependencies-node is-${kind}`}
      data-node={number}
      data-relation={relation}
      data-dim={isDim || undefined}
      data-unkept={!isKept || undefined}
      transform={`translate(${x} ${y})`}
      role="button"
      tabindex={0}
      aria-pressed={number === selected}
      aria-label={`${title}, ${facts}`}
      onClick={choose}
      onKeyDown={(event) => event.key === 'Enter' && (event.stopPropagation(), choose(event))}
    >
      <title>{`${title}: ${facts}`}</title>
      <rect width={BOX.width} height={BOX.height} rx="4" />
      <path class="dependencies-side" data-broken={before.size === 0 || undefined} d={`M0 3V${BOX.height - 3}`} />
      <path class="dependencies-side" data-broken={after.size === 0 || undefined} d={`M${BOX.width} 3V${BOX.height - 3}`} />
      <text x="8" y="16">
        {fittingEnd(title, BOX.width - (isDeadEnd ? DEAD_END_PX : 0) - 16, {weight: 400, px: 11})}
      </text>
      {isDeadEnd && (
        <text class="dependencies-dead-end" x={BOX.width - 6} y="16" text-anchor="end">
          no link
        </text>
      )}
    </g>
  );
}
