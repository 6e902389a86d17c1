/** A part of a tensor as a heat map, a picture, bars or a number. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';
import type {TensorPart} from '../../api/tensors';
import {barsOf} from '../../tensors/bars';
import {paintBars} from './paintBars';
import {cellAt, cornerOf, gridOf, neighbour} from '../../tensors/grid';
import type {Box, Cell, Counts, Grid} from '../../tensors/grid';
import type {Shape} from '../../tensors/look';
import {entryOfCell, facetsOf, paint} from './paint';
import type {Painting} from './paint';
import {cellOf, indexInTensor} from '../../tensors/request';
import type {View} from '../../tensors/request';
import type {ScaleChoice} from '../../tensors/shade';
import {shortest} from '../../tensors/shade';
import {followInks} from './shades';
import {entryText} from '../../tensors/words';

interface PictureProps {
  view: View;
  look: Shape;
  scale: ScaleChoice;
  box: Box;
  /** What is shown, for those who do not see it. */
  name: string;
  /** Index of the element that is marked. */
  pick: readonly number[] | null;
  onPick: (entry: number) => void;
}

export function Picture(props: PictureProps): JSX.Element {
  const {part} = props.view;
  if (props.look === 'empty') return <p class="tensor-empty">This tensor has no elements: its shape is [{part.kept_shape.join(', ')}].</p>;
  if (props.look === 'number') return <p class={`tensor-number${Number.isFinite(part.values[0]) ? '' : ' is-bad'}`}>{shortest(part.values[0] as number, part.dtype)}</p>;
  return <Drawing {...props} />;
}

/** Where things are on the canvas. */
interface Placed {
  painting: Painting;
  grid: Grid;
  counts: Counts;
}

function place({view, look, scale, box}: PictureProps): Placed {
  const {facets} = facetsOf(view, look);
  const counts = {rows: view.axes.rows.offsets.length, columns: view.axes.columns.offsets.length, facets: facets.length};
  const grid = look === 'bars' ? barsOf(counts, box) : gridOf(counts, box);
  return {painting: {view, look, scale, facets, grid, counts}, grid, counts};
}

function Drawing(props: PictureProps): JSX.Element {
  const {view, look, name, pick, onPick} = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const pointed = useSignal<Cell | null>(null);
  const inks = followInks().value;
  const placed = place(props);
  const {painting, grid, counts} = placed;
  const {part} = view;
  useLayoutEffect(() => {
    if (canvas.current === null) return;
    if (look === 'bars') paintBars(canvas.current, painting, inks);
    else paint(canvas.current, painting, inks);
  });
  const picked = pick === null ? null : withFacets(placed, view, pick);
  const shown = pointed.value ?? picked;
  const entry = shown === null || shown.facet >= counts.facets ? null : entryOfCell(painting, shown);
  const cellUnder = ({offsetX, offsetY}: MouseEvent): Cell | null => (look === 'bars' ? barAt(placed, offsetX) : cellAt(grid, counts, offsetX, offsetY));
  // A finger has left before the click comes, which says where it was.
  const choose = (event: MouseEvent): void => {
    const cell = cellUnder(event);
    if (cell !== null && cell.facet < counts.facets) onPick(entryOfCell(painting, cell));
  };
  const press = (event: KeyboardEvent): void => {
    if (!/^Arrow/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    pointed.value = null;
    const from = picked ?? {facet: 0, row: 0, column: 0};
    const to = picked === null ? from : neighbour(from, counts, grid.across, event.key);
    onPick(entryOfCell(painting, to));
  };
  const mark = shown && markOf(placed, shown, look);
  return (
    <div class="tensor-drawing">
      <div
        class="tensor-canvas"
        role="application"
        aria-roledescription="array"
        aria-label={`${name}. Arrow keys go from element to element.`}
        tabIndex={0}
        onKeyDown={press}
      >
        <canvas
          ref={canvas}
          onPointerMove={(event) => (pointed.value = cellUnder(event))}
          onPointerLeave={() => (pointed.value = null)}
          onClick={choose}
        />
        {mark && <i class="tensor-mark" style={mark} />}
      </div>
      <output class={`tensor-readout${isBad(part, entry) ? ' is-bad' : ''}`} aria-live="polite">
        {entry === null ? <span class="dim">Point at an element to read it; click to follow it.</span> : entryText(part, entry)}
      </output>
    </div>
  );
}

/** The cell of an index, also where several facets are one picture. */
function withFacets({painting, counts}: Placed, view: View, pick: readonly number[]): Cell | null {
  const cell = cellOf(view, pick);
  if (cell === null || painting.look !== 'rgb') return cell;
  return {...cell, facet: Math.min(counts.facets - 1, Math.floor(cell.facet / facetsOf(view, painting.look).channels))};
}

function isBad(part: TensorPart, entry: number | null): boolean {
  return entry !== null && !Number.isFinite(part.values[entry]);
}

function barAt({grid, counts}: Placed, x: number): Cell | null {
  const column = Math.floor(x / grid.cellWidth);
  return column >= 0 && column < counts.columns ? {facet: 0, row: 0, column} : null;
}

function markOf({grid}: Placed, cell: Cell, look: Shape): JSX.CSSProperties {
  const {x, y} = cornerOf(grid, cell);
  const height = look === 'bars' ? grid.height : grid.cellHeight;
  return {left: `${x}px`, top: `${look === 'bars' ? 0 : y}px`, width: `${Math.max(3, grid.cellWidth)}px`, height: `${Math.max(3, height)}px`};
}

/** The index in the tensor of an entry that was picked. */
export function pickedIndex(part: TensorPart, entry: number): number[] {
  return indexInTensor(part, entry);
}
