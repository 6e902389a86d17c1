/** A box of the graph. */

import type {PlacedNode} from '../api/types';
import {colourAt, isStrong} from '../graph/colours';
import type {NodeText} from '../graph/facts';
import type {NodeKey} from '../state/keys';
import {startDrag} from './drag';
import {fitting, textWidth} from './textWidth';

const LABEL = {weight: 600, px: 12};
const DETAIL = {weight: 400, px: 11};
const SHAPE_PX = 6.1;
const PAD = 10;
const GAP = 4;

export interface GraphNodeProps {
  id: string;
  placed: PlacedNode;
  nodeKey: NodeKey;
  kind: string;
  family: string;
  text: NodeText;
  isOpenable: boolean;
  isSelected: boolean;
  pin: number | null;
  /** Place on the colour scale; null has no data; undefined is coloured by class. */
  heat: number | null | undefined;
  isSigned: boolean;
  onSelect: (key: NodeKey) => void;
  onOpen: (key: NodeKey) => void;
  onHover: (key: NodeKey | null, element: Element | null) => void;
}

export function GraphNode(props: GraphNodeProps) {
  const {placed, nodeKey, kind, text, isOpenable, isSelected, pin} = props;
  const {width, height} = placed;
  return (
    <g
      id={props.id}
      class={classOf(props)}
      role="option"
      aria-selected={isSelected}
      aria-label={`${text.label}, ${text.detail}${isOpenable ? ', has an inside' : ''}${pin === null ? '' : ', pinned'}`}
      data-key={nodeKey}
      transform={`translate(${placed.x - width / 2},${placed.y - height / 2})`}
      style={styleOf(props)}
      onPointerDown={(event) => startDrag(event, nodeKey, text.label)}
      onClick={() => props.onSelect(nodeKey)}
      onDblClick={() => isOpenable && props.onOpen(nodeKey)}
      onPointerEnter={(event) => props.onHover(nodeKey, event.currentTarget)}
      onPointerLeave={() => props.onHover(null, null)}
    >
      {isOpenable && <rect class="node-behind" x={3} y={3} width={width} height={height} rx={6} />}
      <rect class="node-box" width={width} height={height} rx={kind === 'call' ? 6 : height / 2} />
      {props.heat === null && <rect class="node-hatch" width={width} height={height} rx={kind === 'call' ? 6 : height / 2} />}
      {kind === 'call' && <rect class="node-stripe" x={0} y={0} width={4} height={height} rx={2} />}
      <NodeLines text={text} isCall={kind === 'call'} isOpenable={isOpenable} width={width} height={height} />
      {pin !== null && <circle class="node-pin" cx={width} cy={0} r={6} style={{fill: `var(--pin-${pin})`}} />}
    </g>
  );
}

interface LinesProps {
  text: NodeText;
  isCall: boolean;
  isOpenable: boolean;
  width: number;
  height: number;
}

function NodeLines({text, isCall, isOpenable, width, height}: LinesProps) {
  const room = width - 2 * PAD;
  if (!isCall) {
    return (
      <text class="node-label" x={width / 2} y={height / 2} text-anchor="middle" dominant-baseline="central">
        {fitting(text.label, room + 8, LABEL)}
      </text>
    );
  }
  const isTall = height >= 54;
  const shapeRoom = isTall ? room : room - textWidth(text.detail, DETAIL) - GAP;
  const shapeWidth = text.shape.length * SHAPE_PX;
  const shape = shapeWidth <= shapeRoom ? text.shape : '';
  const lines = isTall && shape ? 3 : 2;
  const y = (line: number): number => height / 2 + (line - (lines - 1) / 2) * 15;
  return (
    <>
      <text class="node-label" x={PAD + 2} y={y(0)} dominant-baseline="central">
        {fitting(text.label, room - (isOpenable ? 18 : 0), LABEL)}
      </text>
      <text class="node-detail" x={PAD + 2} y={y(1)} dominant-baseline="central">
        {fitting(text.detail, room - (shape && !isTall ? shapeWidth + GAP : 0), DETAIL)}
      </text>
      {shape && (
        <text
          class="node-shape"
          x={isTall ? PAD + 2 : width - PAD}
          y={y(isTall ? 2 : 1)}
          text-anchor={isTall ? 'start' : 'end'}
          dominant-baseline="central"
        >
          {shape}
        </text>
      )}
      {isOpenable && <path class="node-chevron" d={`M${width - PAD - 5},${y(0) - 4}l4,4l-4,4`} />}
    </>
  );
}

function classOf({kind, isSelected, isOpenable, pin, heat, isSigned}: GraphNodeProps): string {
  const strong = heat !== null && heat !== undefined && isStrong(heat, isSigned);
  return [
    'node',
    `node-${kind}`,
    isSelected && 'is-selected',
    isOpenable && 'is-openable',
    pin !== null && 'is-pinned',
    heat === undefined ? 'by-class' : 'by-value',
    strong && 'is-strong',
  ]
    .filter(Boolean)
    .join(' ');
}

function styleOf({family, heat, isSigned, pin}: GraphNodeProps): Record<string, string> {
  return {
    '--family': `var(--family-${family})`,
    ...(typeof heat === 'number' ? {'--fill': colourAt(heat, isSigned)} : {}),
    ...(pin === null ? {} : {'--pin': `var(--pin-${pin})`}),
  };
}
