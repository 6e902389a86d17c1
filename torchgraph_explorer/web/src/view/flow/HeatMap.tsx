/** The maps of a tensor as heat. A click selects an element, or edits it; dragging takes a region; arrows move a cursor. */

import {useEffect, useRef, useState} from 'preact/hooks';
import {formatNumber} from '../../numberText';
import {followColours} from './colour';
import {copyRegion, pasteAt} from './clipboard';
import {correspondingSpan} from '../../flow/lining';
import {cellAt, elementOf, elementText, flatPlace, isWithin, layoutMaps, nearestCell} from '../../flow/maps';
import type {Cell, MapLayout} from '../../flow/maps';
import {countOf, regionOf, spanOf, spanOfElement} from '../../flow/region';
import {gradientOf} from '../../tensors/shade';
import {box, eachCell, paint, placeIn, ring} from './paintMaps';
import {brush, edit, isEditing, isLinked, isOneScale, isStrong, largest, leadOf, linedUp, liningOf, marked, pointed, select, show, spans, state, zoom} from './state';
import type {Element, Maps, TensorFacts} from '../../flow/types';

interface HeatMapProps {
  facts: TensorFacts;
  maps: Maps;
  /** Contributions to or from the selection, of the same maps. */
  received: Maps | null;
  isInput: boolean;
}

const MOVES: Record<string, readonly [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

const LINE = 3;

export function HeatMap({facts, maps, received, isInput}: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const painted = useRef<Map<number, number> | null>(null);
  const [anchor, setAnchor] = useState<Cell | null>(null);
  const layout = layoutMaps(maps.shape, zoom.value, spans.value[facts.name] ?? null);
  const colours = followColours().value;
  const lead = leadOf(facts);
  const scale = isOneScale.value ? Math.max(0, ...state.value!.chain.map((name) => largest.value[name] ?? 0)) : Math.max(Math.abs(maps.low), Math.abs(maps.high));
  // On one scale, a colour is one number everywhere.
  const isSigned = isOneScale.value || maps.low < 0;
  const selected = state.value!.selection?.tensor === facts.name ? state.value!.selection.elements : [];
  const mark = marked.value?.tensor === facts.name ? marked.value.element : null;
  const hovered = pointed.value?.tensor === facts.name ? pointed.value.element : null;
  const element = (cell: Cell) => elementOf(facts.shape, lead, cell);
  const matches = received !== null && received.values.length === maps.values.length ? received : null;
  const dragged = anchor !== null && cursor !== null && anchor.map === cursor.map ? spanOf(anchor, cursor) : null;

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    paint(context, layout, maps, {colours, scale, isSigned});
    eachCell(layout, (cell) => {
      const value = matches?.values[placeIn(maps, cell)] ?? 0;
      if (matches !== null && isStrong(Math.abs(value), Math.max(Math.abs(matches.low), Math.abs(matches.high)))) {
        ring(context, layout, cell, {colour: value < 0 ? colours.negative : colours.positive, width: 2});
      }
      if (hovered !== null && isWithin(element(cell), hovered)) ring(context, layout, cell, {colour: colours.mark, width: 1});
    });
    const frame = (region: Element, width: number, isDashed = false) => {
      const span = spanOfElement(facts.shape, region);
      for (let map = 0; map < maps.shape[0]; map++) {
        const inside = element({map, row: span.rows[0], column: span.columns[0]});
        if (isWithin(inside, region)) box(context, layout, map, span, {colour: colours.mark, width, isDashed});
      }
    };
    for (const one of selected) frame(one, LINE);
    if (mark !== null && !selected.some((one) => JSON.stringify(one) === JSON.stringify(mark))) frame(mark, 2, true);
    if (dragged !== null) box(context, layout, anchor!.map, dragged, {colour: colours.mark, width: 2, isDashed: true});
    const over = linkedSpan(facts);
    if (over !== null) for (let map = 0; map < maps.shape[0]; map++) box(context, layout, map, over, {colour: colours.mark, width: 1, isDashed: true});
    if (cursor !== null && document.activeElement === canvas.current) ring(context, layout, cursor, {colour: colours.mark, width: 1});
  });

  const cellOfEvent = (event: PointerEvent): Cell | null => {
    const place = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top];
    return anchor === null ? cellAt(layout, x, y) : nearestCell(layout, anchor.map, x, y);
  };
  const canEdit = isInput && isEditing.value;
  const brushed = (cell: Cell) => (maps.values[placeIn(maps, cell)] === brush.value ? 0 : brush.value);
  /** An element or a region was chosen. */
  const take = (region: Element, cell: Cell, adds: boolean) => {
    const isRegion = countOf(facts.shape, region) > 1;
    marked.value = isRegion ? {tensor: facts.name, element: region} : null;
    if (!canEdit) facts.gradient && select(facts.name, region, adds);
    else if (isRegion) edit({kind: 'fill', tensor: facts.name, region, value: brush.value});
    else edit({kind: 'cells', tensor: facts.name, places: [flatPlace(facts.shape, element(cell))], values: [brushed(cell)]});
  };
  const down = (event: PointerEvent) => {
    const cell = cellOfEvent(event);
    if (cell === null || event.button !== 0) return;
    canvas.current!.focus();
    canvas.current!.setPointerCapture(event.pointerId);
    setCursor(cell);
    if (!canEdit || event.shiftKey) return setAnchor(cell);
    setAnchor(null);
    painted.current = new Map();
    drag(event);
  };
  const drag = (event: PointerEvent) => {
    const cell = cellOfEvent(event);
    pointed.value = cell === null || anchor !== null ? null : {tensor: facts.name, element: element(cell)};
    if (cell !== null) setCursor(cell);
    if (cell === null || painted.current === null) return;
    const first = painted.current.values().next().value as number | undefined;
    painted.current.set(flatPlace(facts.shape, element(cell)), first ?? brushed(cell));
  };
  const up = (event: PointerEvent) => {
    const cells = painted.current;
    painted.current = null;
    if (cells !== null && cells.size > 0) edit({kind: 'cells', tensor: facts.name, places: [...cells.keys()], values: [...cells.values()]});
    if (dragged === null) return;
    const region = regionOf(facts.shape, lead, anchor!.map, dragged);
    setAnchor(null);
    if (canEdit) marked.value = {tensor: facts.name, element: region};
    else take(region, cursor!, event.shiftKey || event.ctrlKey || event.metaKey);
  };
  const keys = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    const from = cursor ?? {map: 0, row: layout.top, column: layout.left};
    if (move) {
      const to = moved(maps, layout, from, move);
      setCursor(to);
      follow(facts, layout, to);
      const held = anchor ?? from;
      setAnchor(event.shiftKey && held.map === to.map ? held : null);
    } else if (event.key === 'Enter' || event.key === ' ') {
      const region = regionOf(facts.shape, lead, from.map, dragged ?? spanOf(from, from));
      setAnchor(null);
      take(region, from, event.shiftKey && dragged === null);
    } else return;
    event.preventDefault();
  };
  const copy = (event: ClipboardEvent) => {
    const region = dragged !== null ? regionOf(facts.shape, lead, anchor!.map, dragged) : (mark ?? (cursor === null ? null : element(cursor)));
    const text = region === null ? null : copyRegion(facts, maps, region);
    if (text === null) return;
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  const paste = (event: ClipboardEvent) => {
    event.preventDefault();
    pasteAt(facts, event.clipboardData?.getData('text/plain') ?? '', cursor === null ? null : element(cursor));
  };
  const here = cursor === null ? null : placeIn(maps, cursor);
  return (
    <>
      <div class="flow-scroll">
        <canvas
          ref={canvas}
          class={canEdit ? 'is-edited' : ''}
          width={layout.width}
          height={layout.height}
          tabIndex={0}
          role="img"
          aria-label={`${facts.name}: ${layout.maps} maps of ${layout.rows} × ${layout.columns}. Arrows move, with Shift they take a region, Enter ${canEdit ? 'edits' : 'selects'}`}
          onPointerDown={down}
          onPointerMove={drag}
          onPointerUp={up}
          onPointerCancel={() => {
            painted.current = null;
            setAnchor(null);
          }}
          onPointerLeave={() => (pointed.value = null)}
          onKeyDown={keys}
          onCopy={copy}
          onPaste={paste}
          onFocus={() => cursor === null && setCursor({map: 0, row: layout.top, column: layout.left})}
          onBlur={() => setAnchor(null)}
        />
      </div>
      <Ramp size={scale} isSigned={isSigned} />
      <p class="flow-readout mono" aria-live="polite">
        {dragged !== null
          ? elementText(regionOf(facts.shape, lead, anchor!.map, dragged))
          : cursor !== null && here !== null && here < maps.values.length
            ? `${elementText(element(cursor))} ${formatNumber(maps.values[here]!)}${matches === null ? '' : `, contribution ${formatNumber(matches.values[here]!)}`}`
            : '\u00a0'}
      </p>
    </>
  );
}

const DIVERGING = [0, 1, 2, 3, 4].map((i) => `var(--div-${i})`);
const SEQUENTIAL = [0, 1, 2, 3, 4].map((i) => `var(--seq-${i})`);

/** What the colours stand for. */
function Ramp({size, isSigned}: {size: number; isSigned: boolean}) {
  if (!(size > 0)) return null;
  const [low, high] = [formatNumber(isSigned ? -size : 0), formatNumber(size)];
  return (
    <span class="flow-ramp" role="img" aria-label={`Colours from ${low} to ${high}${isSigned ? ', zero in the middle' : ''}`}>
      <span>{low}</span>
      <i style={{background: gradientOf(isSigned ? DIVERGING : SEQUENTIAL, isSigned)}} />
      <span>{high}</span>
    </span>
  );
}

/** The part of a tensor that lies over what is pointed at in another one, where they are linked. */
function linkedSpan(facts: TensorFacts) {
  const other = pointed.value === null || !isLinked.value ? undefined : linedUp(facts).find(({name}) => name === pointed.value!.tensor);
  if (other === undefined || other.name === facts.name) return null;
  return correspondingSpan(spanOfElement(other.shape, pointed.value!.element), liningOf(other), liningOf(facts), facts.shape);
}

/** Moves the part that is shown with a cursor that has left it. */
function follow(facts: TensorFacts, {top, left, rows, columns}: MapLayout, {row, column}: Cell): void {
  if (spans.value[facts.name] === undefined) return;
  const shift = (at: number, first: number, count: number) => (at < first ? at : at >= first + count ? at - count + 1 : first);
  const [newTop, newLeft] = [shift(row, top, rows), shift(column, left, columns)];
  if (newTop !== top || newLeft !== left) show(facts, {rows: [newTop, newTop + rows], columns: [newLeft, newLeft + columns]});
}

/** Beyond the edge of a map, into the one beside it. */
function moved({shape: [maps, rows, columns]}: Maps, {across}: MapLayout, {map, row, column}: Cell, [down, right]: readonly [number, number]): Cell {
  const wanted = {map, row: row + down, column: column + right};
  const next = wanted.row < 0 ? map - across : wanted.row >= rows ? map + across : wanted.column < 0 ? map - 1 : wanted.column >= columns ? map + 1 : map;
  if (next === map) return wanted;
  if (next < 0 || next >= maps) return {map, row, column};
  return {map: next, row: (wanted.row + rows) % rows, column: (wanted.column + columns) % columns};
}
