/** A box of the graph. */

import './GraphNode.css';

import type {PlacedNode} from '../../api/types';
import {colourAt, isStrong, troubleColourAt} from '../../graph/colours';
import type {NodeText} from '../../graph/facts';
import {markText, markWords} from '../../graph/nonfinite';
import type {Mark} from '../../graph/nonfinite';
import type {StripCell} from '../../graph/folds';
import type {NodeKey} from '../../graph/keys';
import {BADGE_TOP} from '../../graph/geometry';
import {badgeText, badgeWords, severityOf} from '../../findings/places';
import type {FindingMark} from '../../findings/places';
import type {NodeChange} from '../comparison/graph';
import {startDrag} from './drag';
import {fitting, textWidth} from './textWidth';

const LABEL = {weight: 600, px: 12};
const DETAIL = {weight: 400, px: 11};
const SHAPE_PX = 6.1;
const PAD = 10;
const GAP = 4;
/** Of the strip of a repeated call: as in `layout/sizes.py`. */
const STRIP_PX = 12;

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
  /** Where it stands for a repeated call: how often, which of them is shown, and all of them in a strip; else null. */
  calls: {count: number; times: number; turn: number; strip: readonly StripCell[]; /** Of a stack of equal siblings. */ onOpen: (() => void) | null} | null;
  /** Where it is on the colour scale, from 0 to 1, or a look of its own; null was not recorded; undefined is coloured by class. */
  heat: number | 'zero' | 'nonfinite' | 'empty' | null | undefined;
  /** It, or something inside of it, holds NaN or infinity. */
  mark: Mark | null;
  /** What began here; null where nothing did. */
  origin: string | null;
  /** The findings of it, and of what is inside of it. */
  findings: FindingMark | null;
  /** How it differs from another run that it is compared with; null where it does not. */
  change: NodeChange | null;
  isSigned: boolean;
  /** The scale counts NaN and infinity. */
  isCount: boolean;
  onSelect: (key: NodeKey) => void;
  onOpen: (key: NodeKey) => void;
  onFinding: (mark: FindingMark) => void;
  onHover: (key: NodeKey | null, element: Element | null) => void;
}

export function GraphNode(props: GraphNodeProps) {
  const {placed, nodeKey, kind, text, isOpenable, isSelected, pin, mark, findings, change, calls} = props;
  const {width, height} = placed;
  const box = {width, height, rx: kind === 'call' ? 6 : height / 2};
  return (
    <g
      id={props.id}
      class={classOf(props)}
      role="option"
      aria-selected={isSelected}
      aria-label={`${text.label}, ${text.detail}${calls === null ? '' : `, one of ${calls.times} ${calls.onOpen === null ? 'calls' : 'equal modules'}`}${isOpenable ? ', has an inside' : ''}${mark ? `, ${markWords(mark)}` : ''}${findings ? `, ${badgeWords(findings)}` : ''}${change ? `, ${change.words}` : ''}${pin === null ? '' : ', pinned'}`}
      data-key={nodeKey}
      transform={`translate(${placed.x - width / 2},${placed.y - height / 2})`}
      style={styleOf(props)}
      onPointerDown={(event) => startDrag(event, nodeKey, text.label)}
      onClick={() => props.onSelect(nodeKey)}
      onDblClick={() => isOpenable && props.onOpen(nodeKey)}
      onPointerEnter={(event) => props.onHover(nodeKey, event.currentTarget)}
      onPointerLeave={() => props.onHover(null, null)}
    >
      {calls !== null && <rect class="node-behind" {...box} x={6} y={6} />}
      {(isOpenable || calls !== null) && <rect class="node-behind" {...box} x={3} y={3} />}
      <rect class="node-box" {...box} />
      {props.heat === null && <rect class="node-hatch" {...box} />}
      {(props.heat === 'zero' || props.heat === 'empty') && <rect class={`node-${props.heat}`} {...box} />}
      {(mark !== null || props.heat === 'nonfinite') && <rect class="node-bad" {...box} />}
      {kind === 'call' && <rect class="node-stripe" x={0} y={0} width={4} height={height} rx={2} />}
      <NodeLines
        text={text}
        isCall={kind === 'call'}
        isOpenable={isOpenable}
        times={calls?.times ?? 1}
        width={width}
        height={calls !== null && kind === 'call' ? height - STRIP_PX : height}
      />
      {calls !== null && kind === 'call' && <CallStrip {...calls} isSigned={props.isSigned} isCount={props.isCount} width={width} height={height} />}
      {calls !== null && calls.onOpen !== null && <OpenBadge count={calls.count} width={width} height={height} onOpen={calls.onOpen} />}
      {mark && <MarkBadge text={props.origin ?? markText(mark)} isOrigin={props.origin !== null} />}
      {findings && <FindingBadge mark={findings} width={width} besides={mark ? (props.origin ?? markText(mark)) : null} onPress={props.onFinding} />}
      {change && <ChangeBadge change={change} height={height} />}
      {pin !== null && <circle class="node-pin" cx={width} cy={0} r={6} style={{fill: `var(--pin-${pin})`}} />}
    </g>
  );
}

/** On the lower edge: a click draws the modules of a stack one by one. */
function OpenBadge({count, width, height, onOpen}: {count: number; width: number; height: number; onOpen: () => void}) {
  const text = `Open ${count}`;
  const long = textWidth(text, BADGE) + 10;
  return (
    <g
      class="stack-open"
      transform={`translate(${width - long - 8},${height - 4})`}
      onClick={(event) => {
        event.stopPropagation();
        onOpen();
      }}
    >
      <rect width={long} height={15} rx={7} />
      <text x={5} y={8} dominant-baseline="central">
        {text}
      </text>
    </g>
  );
}

interface CallStripProps {
  count: number;
  turn: number;
  strip: readonly StripCell[];
  isSigned: boolean;
  isCount: boolean;
  width: number;
  height: number;
}

/** All calls from the first to the last, coloured as the nodes are, and which of them is shown. */
function CallStrip({count, turn, strip, isSigned, isCount, width, height}: CallStripProps) {
  const [left, long, top] = [PAD + 2, width - 2 * PAD - 2, height - STRIP_PX - 1];
  const wide = long / strip.length;
  const colour = (t: number): string => (isCount ? troubleColourAt(t) : colourAt(t, isSigned));
  return (
    <g class="node-calls" transform={`translate(${left},${top})`}>
      <rect class="node-calls-track" width={long} height={6} />
      {strip.map(
        (cell, i) =>
          cell !== null && (
            <rect key={i} class={cell === 'bad' ? 'is-bad' : ''} x={i * wide} width={wide + 0.3} height={6} style={cell === 'bad' ? {} : {fill: colour(cell)}} />
          ),
      )}
      <path class="node-calls-turn" d={`M${(long * (turn + 0.5)) / count},-1.5v9`} />
    </g>
  );
}

const BADGE = {weight: 700, px: 10};

/** What is wrong, as text on the upper edge. Where it began, the text is filled and says so. */
function MarkBadge({text, isOrigin}: {text: string; isOrigin: boolean}) {
  return (
    <g class={`node-badge${isOrigin ? ' is-origin' : ''}`} transform={`translate(10,${BADGE_TOP})`}>
      <rect width={textWidth(text, BADGE) + 10} height={14} rx={3} />
      <text x={5} y={7.5} dominant-baseline="central">
        {text}
      </text>
    </g>
  );
}

/** How it differs from another run, on the lower edge. */
function ChangeBadge({change: {kind, text}, height}: {change: NodeChange; height: number}) {
  return (
    <g class={`node-change is-${kind}`} transform={`translate(10,${height - 4})`}>
      <rect width={textWidth(text, BADGE) + 10} height={14} rx={3} />
      <text x={5} y={7.5} dominant-baseline="central">
        {text}
      </text>
    </g>
  );
}

interface FindingBadgeProps {
  mark: FindingMark;
  width: number;
  /** What is written on the upper edge already. */
  besides: string | null;
  onPress: (mark: FindingMark) => void;
}

/** What the rules say, on the upper edge; as a number where there is no room for more. */
function FindingBadge({mark, width, besides, onPress}: FindingBadgeProps) {
  const room = width - 22 - (besides === null ? 0 : textWidth(besides, BADGE) + 24);
  const [words, count] = [badgeText(mark), String(mark.own.length || mark.inside.length)];
  const text = textWidth(words, BADGE) + 10 <= room ? words : count;
  const long = textWidth(text, BADGE) + 10;
  return (
    <g
      class={`finding-badge is-${severityOf(mark)}${mark.own.length === 0 ? ' is-inside' : ''}`}
      transform={`translate(${width - long - 10},${BADGE_TOP})`}
      onClick={(event) => {
        event.stopPropagation();
        onPress(mark);
      }}
    >
      <rect width={long} height={14} rx={7} />
      <text x={5} y={7.5} dominant-baseline="central">
        {text}
      </text>
    </g>
  );
}

interface LinesProps {
  text: NodeText;
  isCall: boolean;
  isOpenable: boolean;
  times: number;
  width: number;
  height: number;
}

function NodeLines({text, isCall, isOpenable, times, width, height}: LinesProps) {
  const often = times > 1 ? ` ×${times}` : '';
  const room = width - 2 * PAD;
  if (!isCall) {
    return (
      <text class="node-label" x={width / 2} y={height / 2} text-anchor="middle" dominant-baseline="central">
        {fitting(text.label, room + 8 - textWidth(often, LABEL), LABEL)}
        {often && <tspan class="node-times">{often}</tspan>}
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
        {fitting(text.label, room - (isOpenable ? 18 : 0) - textWidth(often, LABEL), LABEL)}
        {often && <tspan class="node-times">{often}</tspan>}
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

function classOf({kind, isSelected, isOpenable, pin, heat, isSigned, isCount, mark}: GraphNodeProps): string {
  const strong = typeof heat === 'number' && !isCount && isStrong(heat, isSigned);
  return [
    'node',
    `node-${kind}`,
    isSelected && 'is-selected',
    isOpenable && 'is-openable',
    pin !== null && 'is-pinned',
    heat === undefined ? 'by-class' : 'by-value',
    strong && 'is-strong',
    (mark !== null || heat === 'nonfinite') && 'is-bad',
    heat === 'nonfinite' && 'is-off-scale',
    mark?.isInside && 'is-bad-inside',
  ]
    .filter(Boolean)
    .join(' ');
}

function styleOf({family, heat, isSigned, isCount, pin}: GraphNodeProps): Record<string, string> {
  return {
    '--family': `var(--family-${family})`,
    ...(typeof heat === 'number' ? {'--fill': isCount ? troubleColourAt(heat) : colourAt(heat, isSigned)} : {}),
    ...(pin === null ? {} : {'--pin': `var(--pin-${pin})`}),
  };
}
