/** The cells, on a canvas; what lies over them; and the ways to move in them by pointer and keyboard. */

import {useSignal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {useDerived, useReaction} from '../../charts/derived';
import {formatNumber} from '../../numberText';
import {isBad, numberOf} from '../../xray/codes';
import {badRuns, columnAt, columnsOfPixels, paint, shifted, squeezed, zoomed} from '../../xray/matrix';
import type {BadRun, Domain} from '../../xray/matrix';
import type {XrayRow} from '../../xray/tree';
import {tip} from '../panels/setting';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {colours} from './colours';
import {goToCell} from './goToCell';
import {domain, edges, inSight, matrix, rows, toggleFold, wholeDomain, xray} from './store';
import {moduleText, stepsText} from './words';

/** Where a cell is among the rows on show and the columns. */
interface Place {
  row: number;
  column: number;
}

interface Size {
  width: number;
  height: number;
}

const WHEEL = 0.0015;
const KEY_ZOOM = 2;

export function Picture({size}: {size: ReadonlySignal<Size>}): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const place = useSignal<Place | null>(null);
  usePaint(canvas, size);
  useWheel(box);
  const pointed = useDerived(() => (place.value === null ? null : outline(place.value, size.value)), [size]);
  const drag = useRef<{x: number; from: Domain; isMoved: boolean} | null>(null);
  const locate = (event: PointerEvent | MouseEvent): Place | null => placeAt(event, box.current, size.peek());
  const move = (event: PointerEvent): void => {
    const held = drag.current;
    if (held && domain.value !== null && Math.abs(event.clientX - held.x) > 3) {
      held.isMoved = true;
      const perPixel = (held.from.to - held.from.from) / size.peek().width;
      domain.value = shifted(held.from, (held.x - event.clientX) * perPixel, wholeDomain.value);
    }
    point(place, locate(event), event);
  };
  return (
    <div
      ref={box}
      class="xray-picture"
      role="application"
      tabIndex={0}
      aria-label="X-ray: modules by steps. Arrow keys move, Enter goes there, plus and minus zoom, 0 shows all steps, Space folds."
      style={{height: `${size.value.height}px`}}
      onPointerDown={(event) => event.button === 0 && (drag.current = {x: event.clientX, from: inSight.value, isMoved: false})}
      onPointerMove={move}
      onPointerLeave={() => (point(place, null, null), (drag.current = null))}
      onClick={(event) => {
        const isDragged = drag.current?.isMoved === true;
        drag.current = null;
        const at = locate(event);
        if (!isDragged && at !== null) goTo(at);
      }}
      onDblClick={() => (domain.value = null)}
      onKeyDown={(event) => keys(event, place)}
      onBlur={() => point(place, null, null)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <CurrentStep size={size} />
      {pointed.value && <i class="xray-pointed" style={pointed.value} />}
      <span class="sr-only" aria-live="polite">
        {place.value === null ? '' : cellText(place.value)}
      </span>
    </div>
  );
}

function usePaint(canvas: {current: HTMLCanvasElement | null}, size: ReadonlySignal<Size>): void {
  const buffer = useRef<{canvas: HTMLCanvasElement; image: ImageData} | null>(null);
  const waiting = useRef(0);
  const draw = (): void => {
    waiting.current = 0;
    if (canvas.current) buffer.current = drawn(canvas.current, size.peek(), buffer.current);
  };
  useReaction(() => {
    void [size.value, matrix.value, colours.value, inSight.value, edges.value];
    if (waiting.current === 0) waiting.current = requestAnimationFrame(draw);
  }, [size]);
  useEffect(() => () => cancelAnimationFrame(waiting.current), []);
}

type Buffer = {canvas: HTMLCanvasElement; image: ImageData};

function drawn(canvas: HTMLCanvasElement, {width, height}: Size, before: Buffer | null): Buffer | null {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (across < 1 || down < 1) return before;
  if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, {width: across, height: down});
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  const context = canvas.getContext('2d')!;
  context.clearRect(0, 0, across, down);
  const columns = edges.peek().length - 1;
  if (columns < 1) return before;
  const few = squeezedMatrix(down);
  if (few.rows === 0) return before;
  const buffer = bufferOf(across, few.rows, before);
  const pixels = columnsOfPixels(edges.peek(), inSight.peek(), across);
  paint(few.matrix, columns, pixels, colours.peek(), new Uint32Array(buffer.image.data.buffer));
  buffer.canvas.getContext('2d')!.putImageData(buffer.image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(buffer.canvas, 0, 0, across, few.rows, 0, 0, across, down);
  enlargeBad(context, few, {across, down, ratio});
  return buffer;
}

function bufferOf(width: number, height: number, before: Buffer | null): Buffer {
  if (before && before.image.width === width && before.image.height === height) return before;
  const canvas = Object.assign(document.createElement('canvas'), {width, height});
  return {canvas, image: new ImageData(width, height)};
}

interface Squeezed {
  matrix: Uint16Array;
  rows: number;
  /** Where cells are not finite in it, the first ones. */
  bad: BadRun[];
}

let squeezedFor: {matrix: Uint16Array; most: number; found: Squeezed} | null = null;

/** Worked out again only when the rows or the height change, not with every frame of a zoom. */
function squeezedMatrix(most: number): Squeezed {
  const now = matrix.peek();
  if (squeezedFor?.matrix !== now || squeezedFor.most !== most) {
    const few = squeezed(now, edges.peek().length - 1, most);
    squeezedFor = {matrix: now, most, found: {...few, bad: badRuns(few.matrix, edges.peek().length - 1, MOST_ENLARGED)}};
  }
  return squeezedFor.found;
}

const LEAST_BAD_PX = 3;
const MOST_ENLARGED = 4000;

/** Cells that are not finite are at least some pixels large, so that a single one is seen; and hatched, for who cannot tell red. */
function enlargeBad(context: CanvasRenderingContext2D, {rows: count, bad}: Squeezed, {across, down, ratio}: Room): void {
  if (bad.length === 0) return;
  const [{from, to}, at] = [inSight.peek(), edges.peek()];
  const [rowHeight, least] = [down / count, LEAST_BAD_PX * ratio];
  const xOf = (step: number): number => ((step - from) / (to - from)) * across;
  const style = getComputedStyle(context.canvas);
  const [red, lines] = [style.getPropertyValue('--bad'), hatch(context, style.getPropertyValue('--surface'), ratio)];
  for (const {row, first, last} of bad) {
    const [left, right] = [xOf(at[first]!), xOf(at[last + 1]!)];
    const [width, height] = [Math.max(right - left, least), Math.max(rowHeight, least)];
    const place = [(left + right - width) / 2, (row + 0.5) * rowHeight - height / 2, width, height] as const;
    context.fillStyle = red;
    context.fillRect(...place);
    if (lines === null || width < HATCH_PX * ratio) continue;
    context.fillStyle = lines;
    context.fillRect(...place);
  }
}

const HATCH_PX = 8;

/** Slanted lines, which go on from one cell to the next. */
function hatch(context: CanvasRenderingContext2D, colour: string, ratio: number): CanvasPattern | null {
  const size = HATCH_PX * ratio;
  const tile = Object.assign(document.createElement('canvas'), {width: size, height: size});
  const lines = tile.getContext('2d')!;
  Object.assign(lines, {strokeStyle: colour, lineWidth: ratio, globalAlpha: 0.6});
  for (const shift of [-size, 0, size]) {
    lines.moveTo(shift, size);
    lines.lineTo(shift + size, 0);
  }
  lines.stroke();
  return context.createPattern(tile, 'repeat');
}

interface Room {
  across: number;
  down: number;
  ratio: number;
}

/** The wheel zooms around the pointer. Preact listens passively, and the page would scroll. */
function useWheel(box: {current: HTMLDivElement | null}): void {
  useEffect(() => {
    const one = box.current!;
    const zoom = (event: WheelEvent): void => {
      event.preventDefault();
      const {from, to} = inSight.peek();
      const {left, width} = one.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return setDomain(shifted({from, to}, (event.deltaX / width) * (to - from), wholeDomain.peek()));
      const step = from + ((event.clientX - left) / width) * (to - from);
      setDomain(zoomed({from, to}, Math.exp(-event.deltaY * WHEEL), step, wholeDomain.peek()));
    };
    one.addEventListener('wheel', zoom, {passive: false});
    return () => one.removeEventListener('wheel', zoom);
  }, []);
}

function setDomain(next: Domain): void {
  const {from, to} = wholeDomain.peek();
  domain.value = next.to - next.from >= to - from ? null : next;
}

/** Zooms by keys and buttons: around the chosen step if that is in sight. */
export function zoomBy(factor: number, step: number | null = shown.step.peek()): void {
  const now = inSight.peek();
  const around = step !== null && step >= now.from && step <= now.to ? step : (now.from + now.to) / 2;
  setDomain(zoomed(now, factor, around, wholeDomain.peek()));
}

function placeAt(event: MouseEvent, box: HTMLElement | null, {width, height}: Size): Place | null {
  if (box === null) return null;
  const {left, top} = box.getBoundingClientRect();
  const {from, to} = inSight.peek();
  const row = Math.floor(((event.clientY - top) / height) * rows.peek().length);
  const column = columnAt(edges.peek(), from + ((event.clientX - left) / width) * (to - from));
  return row < 0 || row >= rows.peek().length || column < 0 ? null : {row, column};
}

function codeAt({row, column}: Place): number {
  return matrix.peek()[row * (edges.peek().length - 1) + column] ?? 0;
}

/** The step of a column that one goes to: the first of those it stands for. */
function stepOf(column: number): number {
  return xray.peek()?.first[column] ?? 0;
}

function goTo({row, column}: Place): void {
  const one = rows.peek()[row];
  if (one) goToCell(one.module.name, stepOf(column));
}

function point(place: {value: Place | null}, next: Place | null, event: PointerEvent | null): void {
  place.value = next;
  choices.pointedStep.value = next === null ? null : stepOf(next.column);
  const row = next && rows.peek()[next.row];
  if (next === null || event === null || !row) return void (tip.value = null);
  tip.value = {x: event.clientX, y: event.clientY, title: moduleText(row), facts: factsOf(next, row)};
}

function factsOf(place: Place, row: XrayRow): [string, string][] {
  const now = xray.peek();
  if (now === null) return [];
  const label = now.statistics.find(({name}) => name === now.statistic)?.label ?? now.statistic;
  const code = codeAt(place);
  const isMerged = row.rows.length > 1 || now.first[place.column] !== now.last[place.column];
  return [
    ['Step', stepsText(now, place.column)],
    [isMerged ? `${label}, largest` : label, Number.isNaN(numberOf(code)) ? 'not recorded' : formatNumber(numberOf(code))],
    ...(isBad(code) ? [['NaN or infinity', isMerged ? 'in some of these' : 'yes'] as [string, string]] : []),
  ];
}

function cellText(place: Place): string {
  const row = rows.peek()[place.row];
  return row ? [moduleText(row), ...factsOf(place, row).map(([name, value]) => `${name} ${value}`)].join(', ') : '';
}

function keys(event: KeyboardEvent, place: {value: Place | null}): void {
  const last = {row: rows.peek().length - 1, column: edges.peek().length - 2};
  const now = place.value ?? {row: 0, column: Math.max(0, columnAt(edges.peek(), Math.max(inSight.peek().from, shown.step.peek() ?? 0)))};
  const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || last.row < 0) return;
  if (by) {
    const row = Math.max(0, Math.min(last.row, now.row + (place.value === null ? 0 : by[0]!)));
    const column = Math.max(0, Math.min(last.column, now.column + (place.value === null ? 0 : by[1]!)));
    show({row, column}, place);
  } else if (event.key === 'Home' || event.key === 'End') show({...now, column: event.key === 'Home' ? 0 : last.column}, place);
  else if (event.key === 'Enter') goTo(now);
  else if (event.key === ' ') fold(now);
  else if (event.key === '+' || event.key === '=') zoomBy(KEY_ZOOM, place.value === null ? shown.step.peek() : stepOf(now.column));
  else if (event.key === '-') zoomBy(1 / KEY_ZOOM, place.value === null ? shown.step.peek() : stepOf(now.column));
  else if (event.key === '0') domain.value = null;
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function fold({row}: Place): void {
  const module = rows.peek()[row]?.module;
  if (module && module.children.length > 0) toggleFold(module.name);
}

/** Moves to a cell, and the stretch of time with it where that is out of sight. */
function show(next: Place, place: {value: Place | null}): void {
  const [step, {from, to}] = [stepOf(next.column), inSight.peek()];
  if (step < from || step >= to) setDomain(shifted({from, to}, step < from ? step - from : step - to + (to - from) / 10, wholeDomain.peek()));
  point(place, next, null);
}

function outline({row, column}: Place, {width, height}: Size): JSX.CSSProperties | null {
  const {from, to} = inSight.value;
  const xOf = (step: number): number => ((step - from) / (to - from)) * width;
  const [left, right] = [xOf(edges.value[column]!), xOf(edges.value[column + 1]!)];
  const high = height / Math.max(1, rows.value.length);
  if (!(right >= 0 && left <= width)) return null;
  return {left: `${left}px`, width: `${Math.max(2, right - left)}px`, top: `${row * high}px`, height: `${Math.max(2, high)}px`};
}

function CurrentStep({size}: {size: ReadonlySignal<Size>}): JSX.Element | null {
  const step = shown.step.value;
  const {from, to} = inSight.value;
  if (step === null || step < from || step > to || to <= from) return null;
  return <i class="xray-step" style={{left: `${((step - from) / (to - from)) * size.value.width}px`}} />;
}
