/** The links of the chain as a Sankey diagram: the strongest ones, and all others in one grey link. */

import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {formatNumber} from '../../numberText';
import {NumberInput} from '../controls/NumberInput';
import {Select} from '../controls/Select';
import {askLinks} from '../../flow/api';
import {elementText, groupElement, groupOf} from '../../flow/maps';
import {layoutSankey, NODE_WIDTH} from '../../flow/sankey';
import type {SankeyLink, SankeyNode} from '../../flow/sankey';
import {act, factsOf, isStrong, most, pointed, select, state, threshold} from './state';
import type {Links} from '../../flow/types';
import {useAnswer} from '../useAnswer';

const HEIGHT = 380;
const FETCHED = 1000;
const SIDE = 8;
const MOST_GROUPS = 4096;

/** Of the way from one column to the next, how much the name of each may take: the first and the last stand at one side. */
const NAME_SHARE = 0.62;
/** Pixels; in less, the choice of groups above a column could not be read, or would cover that of the next. */
const LEAST_ROOM = 130;
const LETTER_PX = 6.1;

export function SankeyView() {
  const {chain, parts, estimates} = state.value!;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(320, entry.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const found = useLinks();
  const faults = chain.slice(0, -1).flatMap((name, i) => {
    const fault = parts[`links${i}`]?.fault;
    return fault ? [{pair: `${name} → ${chain[i + 1]}`, fault}] : [];
  });
  return (
    <section class="flow-sankey" aria-label="Links">
      <header class="flow-bar">
        <h2>Links</h2>
        <label class="select">
          <span class="select-label">at most</span>
          <NumberInput min={1} max={FETCHED} value={most.value} label="Most links" onChoose={(chosen) => (most.value = Math.max(1, chosen || 1))} />
        </label>
        <span class="dim">
          Width: |contribution|, as its share between two tensors. <i class="flow-negative">■</i> negative, <i class="flow-positive">■</i> positive,{' '}
          <i class="flow-rest-text">■</i> all others, dashed: past the next tensor.
        </span>
      </header>
      {faults.map(({pair, fault}) => (
        <p key={pair} class="flow-note">
          <b>{pair}</b>: {fault}{' '}
          {/take about|Cancelled/.test(fault) && (
            <button type="button" class="button" onClick={() => void act('links')}>
              Compute
            </button>
          )}
        </p>
      ))}
      {estimates.some(Boolean) && (
        <p class="flow-note">
          <b>An estimate</b>: {chain.slice(0, -1).flatMap((name, i) => (estimates[i] ? [`${name} → ${chain[i + 1]}`] : [])).join(', ')}. This case does not hold these contributions. They are guessed
          from the gradients alone, and can be far off.
        </p>
      )}
      <div ref={box} class="flow-sankey-box">
        <Diagram width={width - 2 * SIDE} links={found.value ?? []} />
      </div>
    </section>
  );
}

function useLinks() {
  const {key, chain, parts} = state.value!;
  const stamps = chain.slice(0, -1).map((_, i) => (parts[`links${i}`]?.isThere ? parts[`links${i}`]!.stamp : null));
  const ask = (signal: AbortSignal): Promise<(Links | null)[]> =>
    Promise.all(stamps.map((stamp, i) => (stamp === null ? null : askLinks(i, FETCHED, signal))));
  return useAnswer(JSON.stringify([key, chain, stamps]), ask);
}

function Diagram({width, links}: {width: number; links: readonly (Links | null)[]}) {
  const {chain, dims} = state.value!;
  void threshold.value;
  const shapes = chain.map((name) => factsOf(name)?.shape ?? []);
  const groups = shapes.map((shape, i) => (dims[i] ?? []).reduce((count, dim) => count * (shape[dim] as number), 1));
  // Links of earlier groups stay until the new ones are there, and must not be shown as such.
  const pairs = chain.slice(0, -1).map((_, i) => {
    const pair = links[i] ?? null;
    return pair !== null && pair.groups[0] === groups[i] && pair.groups[1] === groups[i + 1] ? pair : null;
  });
  const {nodes, links: drawn} = layoutSankey({groups, pairs, most: most.value, passes: isStrong, width, height: HEIGHT});
  const text = (column: number, group: number | null) => (group === null ? 'others' : elementText(groupElement(shapes[column]!, dims[column]!, group)));
  const way = width / Math.max(1, chain.length - 1);
  const room = Math.min(NAME_SHARE * way, 0.48 * width); // of two, both stand on the same way
  const isNarrow = room < LEAST_ROOM;
  return (
    <>
      {isNarrow && (
        <div class="flow-groupings">
          {chain.map((name, i) => (
            <div key={name}>
              <ColumnName name={name} />
              <Grouping name={name} dims={dims[i]!} />
            </div>
          ))}
        </div>
      )}
      <div class="flow-columns" style={{width: `${width}px`, marginLeft: `${SIDE}px`}}>
        {chain.map((name, i) => (
          <div key={name} class={`flow-column ${i === 0 ? 'first' : i === chain.length - 1 ? 'last' : ''}`} style={{'--room': `${room}px`}}>
            <ColumnName name={name} room={room} />
            {!isNarrow && <Grouping name={name} dims={dims[i]!} />}
          </div>
        ))}
      </div>
      {drawn.length === 0 && pairs.every((pair) => pair !== null) && <p class="dim">No contribution is finite and other than zero.</p>}
      <svg width={width + 2 * SIDE} height={HEIGHT} viewBox={`${-SIDE} 0 ${width + 2 * SIDE} ${HEIGHT}`} role="group" aria-label="Links of the chain">
        {drawn.map((link, i) => (
          <LinkPath key={i} link={link} label={linkText(link, chain, text)} />
        ))}
        {nodes.map((node, i) => (
          <Node key={node.group === null ? `other.${i}` : `${node.column}.${node.group}`} node={node} way={way} label={`${chain[node.column]} ${text(node.column, node.group)}`} />
        ))}
      </svg>
    </>
  );
}

function linkText({pair, kind, source, target, value, share}: SankeyLink, chain: readonly string[], text: (column: number, group: number | null) => string): string {
  const percent = `${formatNumber(share * 100)} %`;
  if (kind === 'past') return `past ${chain[pair + 1]}: ${formatNumber(value)}, ${percent}`;
  if (kind === 'rest') return `all other links from ${chain[pair]} to ${chain[pair + 1]}: ${formatNumber(value)}, ${percent}`;
  return `${chain[pair]} ${text(pair, source)} from ${chain[pair + 1]} ${text(pair + 1, target)}: ${formatNumber(value)}, ${percent}`;
}

function LinkPath({link, label}: {link: SankeyLink; label: string}) {
  const {chain, dims, selection} = state.value!;
  const ends = [
    {column: link.pair, group: link.source},
    {column: link.pair + 1, group: link.target},
  ];
  const isJoined = ends.some(({column, group}) => {
    const name = chain[column]!;
    const shape = factsOf(name)?.shape ?? [];
    const isChosen = selection?.tensor === name && selection.elements.some((one) => groupOf(shape, dims[column]!, one) === group);
    return group !== null && (isChosen || (pointed.value?.tensor === name && groupOf(shape, dims[column]!, pointed.value.element) === group));
  });
  const sign = link.kind === 'link' ? (link.value < 0 ? 'is-negative' : 'is-positive') : `is-${link.kind}`;
  return (
    <path class={`flow-path ${sign}`} data-joined={isJoined || undefined} d={link.path} style={{strokeWidth: Math.max(0.6, link.width)}}>
      <title>{label}</title>
    </path>
  );
}

/** `way` leads to the next column. */
function Node({node, way, label}: {node: SankeyNode; way: number; label: string}) {
  const {chain, dims} = state.value!;
  const name = chain[node.column]!;
  const shape = factsOf(name)?.shape ?? [];
  const height = Math.max(1, node.height);
  const rect = <rect x={node.x} y={node.y} width={NODE_WIDTH} height={height} />;
  if (node.group === null) {
    return (
      <g class="flow-node is-rest">
        {rect}
        <title>{label}</title>
      </g>
    );
  }
  const element = groupElement(shape, dims[node.column]!, node.group);
  const choose = (adds: boolean) => select(name, element, adds);
  const isLast = node.column === chain.length - 1;
  const text = elementText(element);
  const isShared = node.column >= chain.length - 2; // the last column's names stand before it
  const hasRoom = height >= 11 && text.length * LETTER_PX <= (isShared ? way / 2 : way) - NODE_WIDTH - 8;
  return (
    <g
      class="flow-node"
      role="button"
      tabindex={0}
      aria-label={label}
      onClick={(event) => choose(event.shiftKey)}
      onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ') && (event.preventDefault(), choose(event.shiftKey))}
      onPointerEnter={() => (pointed.value = {tensor: name, element})}
      onPointerLeave={() => (pointed.value = null)}
    >
      {rect}
      <title>{label}</title>
      {hasRoom && (
        <text x={isLast ? node.x - 4 : node.x + NODE_WIDTH + 4} y={node.y + height / 2} text-anchor={isLast ? 'end' : 'start'}>
          {text}
        </text>
      )}
    </g>
  );
}

/** Of a tensor of the chain; `room` in pixels, if not all that there is. */
function ColumnName({name, room}: {name: string; room?: number}) {
  return (
    <code title={name} style={room === undefined ? undefined : {maxWidth: `${Math.max(room, 48)}px`}}>
      <bdi>{name}</bdi>
    </code>
  );
}

/** By which dimensions the elements of a tensor are grouped. */
function Grouping({name, dims}: {name: string; dims: number[]}) {
  const shape = factsOf(name)?.shape ?? [];
  const count = shape.reduce((product, size) => product * size, 1);
  const options = [
    ...(count <= MOST_GROUPS ? [{value: shape.map((_, i) => i).join(), label: `${count} elements`}] : []),
    ...(shape.length > 1 ? shape.map((size, i) => ({value: String(i), label: `${size} along dimension ${i}`})) : []),
    ...(shape.length > 2 ? [{value: `0,1`, label: 'dimensions 0 and 1'}] : []),
  ].filter(({value}) => value.split(',').reduce((product, dim) => product * (shape[Number(dim)] ?? 1), 1) <= MOST_GROUPS);
  return (
    <Select label={`Groups of ${name}`} isBare value={dims.join()} options={options} onChoose={(value) => void act('dims', {tensor: name, dims: value.split(',').map(Number)})} />
  );
}
