/** The maps of a tensor as heat. A click selects an element, or edits it; arrows move a cursor. */

import {useEffect, useRef, useState} from 'preact/hooks';
import {formatNumber} from '../../numberText';
import {followColours, stepOf} from './colour';
import type {Colours} from './colour';
import {cellAt, elementOf, elementText, flatPlace, isWithin, layoutMaps, placeOf} from '../../flow/maps';
import type {Cell, MapLayout} from '../../flow/maps';
import {brush, edit, isEditing, isOneScale, isStrong, largest, leadOf, pointed, select, state, zoom} from './state';
import type {Maps, TensorFacts} from '../../flow/types';

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

export function HeatMap({facts, maps, received, isInput}: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const painted = useRef<Map<number, number> | null>(null);
  const layout = layoutMaps(maps.shape, zoom.value);
  const colours = followColours().value;
  const lead = leadOf(facts);
  const scale = isOneScale.value ? Math.max(...Object.values(largest.value), 0) : Math.max(Math.abs(maps.low), Math.abs(maps.high));
  const selected = state.value!.selection?.tensor === facts.name ? state.value!.selection.elements : [];
  const hovered = pointed.value?.tensor === facts.name ? pointed.value.element : null;
  const element = (cell: Cell) => elementOf(facts.shape, lead, cell);
  const matches = received !== null && received.values.length === maps.values.length ? received : null;

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    paint(context, layout, maps, {colours, scale});
    const outline = (cell: Cell, colour: string, width: number) => ring(context, layout, cell, {colour, width});
    eachCell(layout, (cell, i) => {
      if (matches !== null && isStrong(Math.abs(matches.values[i]!), Math.max(Math.abs(matches.low), Math.abs(matches.high)))) {
        outline(cell, matches.values[i]! < 0 ? colours.negative : colours.positive, 2);
      }
      const here = element(cell);
      if (selected.some((one) => isWithin(here, one))) outline(cell, colours.mark, 3);
      else if (hovered !== null && isWithin(here, hovered)) outline(cell, colours.mark, 1);
    });
    if (cursor !== null && document.activeElement === canvas.current) outline(cursor, colours.mark, 1);
  });

  const cellOfEvent = (event: PointerEvent): Cell | null => {
    const box = canvas.current!.getBoundingClientRect();
    return cellAt(layout, event.clientX - box.left, event.clientY - box.top);
  };
  const canEdit = isInput && isEditing.value;
  const press = (cell: Cell, adds: boolean) => {
    setCursor(cell);
    if (canEdit) {
      const value = maps.values[placeIn(layout, cell)] === brush.value ? 0 : brush.value;
      edit({kind: 'cells', tensor: facts.name, places: [flatPlace(facts.shape, element(cell))], values: [value]});
    } else if (facts.gradient) select(facts.name, element(cell), adds);
  };
  const down = (event: PointerEvent) => {
    const cell = cellOfEvent(event);
    if (cell === null || event.button !== 0) return;
    canvas.current!.focus();
    if (!canEdit) return press(cell, event.shiftKey || event.ctrlKey || event.metaKey);
    canvas.current!.setPointerCapture(event.pointerId);
    setCursor(cell);
    painted.current = new Map();
    drag(event);
  };
  const drag = (event: PointerEvent) => {
    const cell = cellOfEvent(event);
    pointed.value = cell === null ? null : {tensor: facts.name, element: element(cell)};
    if (cell !== null) setCursor(cell);
    if (cell === null || painted.current === null) return;
    const first = painted.current.values().next().value as number | undefined;
    const value = first ?? (maps.values[placeIn(layout, cell)] === brush.value ? 0 : brush.value);
    painted.current.set(flatPlace(facts.shape, element(cell)), value);
  };
  const up = () => {
    const cells = painted.current;
    painted.current = null;
    if (cells !== null && cells.size > 0) edit({kind: 'cells', tensor: facts.name, places: [...cells.keys()], values: [...cells.values()]});
  };
  const keys = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    const from = cursor ?? {map: 0, row: 0, column: 0};
    if (move) setCursor(moved(layout, from, move));
    else if (event.key === 'Enter' || event.key === ' ') press(from, event.shiftKey);
    else return;
    event.preventDefault();
  };
  const here = cursor === null ? null : placeIn(layout, cursor);
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
          aria-label={`${facts.name}: ${layout.maps} maps of ${layout.rows} × ${layout.columns}. Arrows move, Enter ${canEdit ? 'edits' : 'selects'}`}
          onPointerDown={down}
          onPointerMove={drag}
          onPointerUp={up}
          onPointerLeave={() => (pointed.value = null)}
          onKeyDown={keys}
          onFocus={() => cursor === null && setCursor({map: 0, row: 0, column: 0})}
        />
      </div>
      <p class="flow-readout mono" aria-live="polite">
        {cursor !== null && here !== null && here < maps.values.length
          ? `${elementText(element(cursor))} ${formatNumber(maps.values[here]!)}${matches === null ? '' : `, contribution ${formatNumber(matches.values[here]!)}`}`
          : '\u00a0'}
      </p>
    </>
  );
}

/** The place of a cell among the values of the maps. */
function placeIn({rows, columns}: MapLayout, {map, row, column}: Cell): number {
  return (map * rows + row) * columns + column;
}

function eachCell({maps, rows, columns}: MapLayout, visit: (cell: Cell, place: number) => void): void {
  let place = 0;
  for (let map = 0; map < maps; map++) for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) visit({map, row, column}, place++);
}

/** Beyond the edge of a map, into the one beside it. */
function moved(layout: MapLayout, {map, row, column}: Cell, [down, right]: readonly [number, number]): Cell {
  const {maps, rows, columns, across} = layout;
  const wanted = {map, row: row + down, column: column + right};
  const next = wanted.row < 0 ? map - across : wanted.row >= rows ? map + across : wanted.column < 0 ? map - 1 : wanted.column >= columns ? map + 1 : map;
  if (next === map) return wanted;
  if (next < 0 || next >= maps) return {map, row, column};
  return {map: next, row: (wanted.row + rows) % rows, column: (wanted.column + columns) % columns};
}

function paint(context: CanvasRenderingContext2D, layout: MapLayout, maps: Maps, {colours, scale}: {colours: Colours; scale: number}): void {
  context.clearRect(0, 0, layout.width, layout.height);
  const inset = layout.cell > 5 ? 1 : 0;
  eachCell(layout, (cell, place) => {
    const step = stepOf(maps.values[place]!, scale);
    const {x, y} = placeOf(layout, cell);
    const [r, g, b] = step < 0 ? [] : colours.table.subarray(step * 4, step * 4 + 3);
    context.fillStyle = step < 0 ? colours.nonfinite : `rgb(${r} ${g} ${b})`;
    context.fillRect(x, y, layout.cell - inset, layout.cell - inset);
  });
}

function ring(context: CanvasRenderingContext2D, layout: MapLayout, cell: Cell, {colour, width}: {colour: string; width: number}): void {
  const {x, y} = placeOf(layout, cell);
  const line = Math.min(width, Math.max(1, layout.cell / 4));
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, Math.max(1, layout.cell - line), Math.max(1, layout.cell - line));
}

