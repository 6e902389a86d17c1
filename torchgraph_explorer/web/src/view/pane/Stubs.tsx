/** The labels of edges that are not drawn as lines. Pointing at one shows the lines; a click leads to the other end. */

import './Stubs.css';

import {edgeKey} from '../../graph/edges';
import {nodeText} from '../../graph/facts';
import {nodeKey} from '../../graph/keys';
import {arrivalsOf, departuresOf, STUB_HEIGHT, STUB_LABEL_WIDTH} from '../../graph/stubs';
import type {Arrival, Departure} from '../../graph/stubs';
import type {Area} from '../../graph/geometry';
import {meet} from '../../graph/geometry';
import type {Node} from '../../api/types';
import * as choices from '../state/choices';
import {lookOf} from './flows';
import {hover, hoverAt} from './hover';
import type {Scene} from './scene';
import {led} from './led';
import {fitting, textWidth} from './textWidth';

const TEXT = {weight: 400, px: 11};
const PAD = 4;

/** The stubs of a drawing, as far as they are within `sight`; all of them where that is null. */
export function Stubs({scene, sight}: {scene: Scene; sight: Area | null}) {
  const isInSight = ([x, y]: readonly [number, number]): boolean => sight === null || meet({left: x, right: x, top: y, bottom: y}, sight);
  return (
    <g class="stubs">
      {arrivalsOf(scene.graph, scene.layout).map((one) => isInSight(one.to) && <ArrivalLabel key={one.edges[0]} scene={scene} arrival={one} />)}
      {departuresOf(scene.graph, scene.layout).map((one) => isInSight(one.at) && <DepartureLabel key={one.source} scene={scene} departure={one} />)}
    </g>
  );
}

function ArrivalLabel({scene, arrival: {target, sources, edges, from, to}}: {scene: Scene; arrival: Arrival}) {
  const {graph} = scene;
  const [edge] = edges;
  const isAlone = sources.length === 1;
  const text = isAlone ? fitting(nameOf(scene, sources[0]), STUB_LABEL_WIDTH, TEXT) : `${sources.length} more`;
  const look = edge === undefined ? undefined : lookOf(graph.edges[edge]);
  const hasGradient = edges.some((one) => graph.edges[one]?.gradient ?? true);
  const width = look?.width == null ? undefined : {strokeWidth: `${Math.min(look.width, 4)}px`};
  return (
    <g class="stub" {...leading(scene, edges)} onClick={() => lead(scene, isAlone ? sources[0] : target)}>
      <path class={`edge${hasGradient ? '' : ' no-gradient'}`} style={width} d={`M${from[0]},${from[1]}H${to[0] - 5}`} marker-end="url(#arrow)" />
      <Label x={from[0] - 2 * PAD - textWidth(text, TEXT)} y={from[1]} text={text} />
    </g>
  );
}

function DepartureLabel({scene, departure: {source, targets, edges, at}}: {scene: Scene; departure: Departure}) {
  const text = `→ ${targets.length}`;
  return (
    <g class="stub" {...leading(scene, edges)} onClick={() => lead(scene, targets.length === 1 ? targets[0] : source)}>
      <Label x={at[0]} y={at[1]} text={text} />
    </g>
  );
}

function Label({x, y, text}: {x: number; y: number; text: string}) {
  return (
    <>
      <rect class="stub-box" x={x} y={y - STUB_HEIGHT / 2 + 1} width={textWidth(text, TEXT) + 2 * PAD} height={STUB_HEIGHT - 2} rx={(STUB_HEIGHT - 2) / 2} />
      <text class="stub-text" x={x + PAD} y={y} dominant-baseline="central">
        {text}
      </text>
    </>
  );
}

/** Pointing at a label shows the lines that it stands for; of a single one, also its gradient. */
function leading({graph, key}: Scene, edges: readonly number[]) {
  const [edge] = edges.length === 1 ? [graph.edges[edges[0] as number]] : [];
  return {
    onPointerEnter: (event: PointerEvent): void => {
      led.value = {scene: key, edges: new Set(edges)};
      if (edge) hoverAt(edgeKey(graph, edge), event);
    },
    onPointerLeave: (): void => {
      led.value = null;
      hover(null, null);
    },
  };
}

function lead({graph}: Scene, node: number | undefined): void {
  led.value = null;
  hover(null, null);
  if (node !== undefined && graph.nodes[node]) choices.find(nodeKey(graph, node));
}

function nameOf({graph}: Scene, node: number | undefined): string {
  const found = node === undefined ? undefined : graph.nodes[node];
  return found ? nodeText(graph, found as Node).label : '';
}
