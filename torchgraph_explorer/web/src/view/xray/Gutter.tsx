/** The names of the rows, and the buttons that fold them. */

import type {JSX} from 'preact';
import {labelPlaces} from '../../xray/tree';
import type {TreeModule} from '../../xray/tree';
import {textWidth} from '../pane/textWidth';
import {indentOf, LABEL_PX, labelRoom, pressedPlaces, rowLabel} from './rowLabel';
import {rows, toggleFold} from './store';

/** The triangle before a name, and the room behind it. */
const MARK_PX = 15;
const FONT = {weight: 600, px: 10};

/** The longest label of a row that has room in `width` pixels. */
function labelIn(module: TreeModule, named: ReadonlySet<string>, width: number): string {
  let letters = module.name.length + module.label.length;
  while (letters > 2 && textWidth(rowLabel(module, named, letters), FONT) > width) letters -= 1;
  return rowLabel(module, named, letters);
}

export function Gutter({width, height}: {width: number; height: number}): JSX.Element {
  const all = rows.value;
  const rowHeight = height / Math.max(1, all.length);
  const room = labelRoom(matchMedia('(pointer: coarse)').matches);
  const shown = labelPlaces(all, rowHeight, room).map(({row, top}) => ({row, middle: top + room / 2}));
  const deepest = all.reduce((most, {module}) => Math.max(most, module.depth), 0);
  const foldable = shown.filter(({row}) => all[row]!.module.children.length > 0);
  const pressed = new Map(pressedPlaces(foldable.map(({middle}) => middle)).map((place, at) => [foldable[at]!.row, place]));
  const named = new Set(shown.map(({row}) => all[row]!.module.name));
  return (
    <ul class="xray-gutter" aria-label="Modules of the x-ray" style={{width: `${width}px`, height: `${height}px`}}>
      {shown.map(({row, middle}) => {
        const {module, isFolded} = all[row]!;
        const indent = indentOf(module.depth, {deepest, width});
        const {above, below} = pressed.get(row) ?? {above: LABEL_PX / 2, below: LABEL_PX / 2};
        const style = {top: `${middle - above}px`, height: `${above + below}px`, paddingLeft: `${indent}px`};
        const label = labelIn(module, named, width - indent - MARK_PX);
        return (
          <li key={module.name} style={style} title={module.name || module.label}>
            {pressed.has(row) ? (
              <button type="button" style={{paddingTop: `${above - LABEL_PX / 2}px`}} aria-expanded={!isFolded} aria-label={`${isFolded ? 'Unfold' : 'Fold'} ${module.name || module.label}`} onClick={() => toggleFold(module.name)}>
                <span>
                  <i class={isFolded ? 'xray-fold is-folded' : 'xray-fold'} aria-hidden="true" />
                  <bdi>{label}</bdi>
                </span>
              </button>
            ) : (
              <bdi class="xray-leaf">{label}</bdi>
            )}
          </li>
        );
      })}
    </ul>
  );
}
