/** The names of the rows, and the buttons that fold them. */

import type {JSX} from 'preact';
import {labelPlaces} from '../../xray/tree';
import type {TreeModule} from '../../xray/tree';
import {textWidth} from '../pane/textWidth';
import {indentOf, LABEL_PX, lineHeight, rowLabel} from './rowLabel';
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
  const shown = labelPlaces(all, rowHeight, LABEL_PX);
  const deepest = all.reduce((most, {module}) => Math.max(most, module.depth), 0);
  const line = lineHeight(shown.map(({top}) => top));
  const named = new Set(shown.map(({row}) => all[row]!.module.name));
  return (
    <ul class="xray-gutter" aria-label="Modules of the x-ray" style={{width: `${width}px`, height: `${height}px`}}>
      {shown.map(({row, top}) => {
        const {module, isFolded} = all[row]!;
        const indent = indentOf(module.depth, {deepest, width});
        const style = {top: `${top - (line - LABEL_PX) / 2}px`, height: `${line}px`, lineHeight: `${line}px`, paddingLeft: `${indent}px`};
        const label = labelIn(module, named, width - indent - MARK_PX);
        const canFold = module.children.length > 0;
        return (
          <li key={module.name} style={style} title={module.name || module.label}>
            {canFold ? (
              <button type="button" aria-expanded={!isFolded} aria-label={`${isFolded ? 'Unfold' : 'Fold'} ${module.name || module.label}`} onClick={() => toggleFold(module.name)}>
                <i class={isFolded ? 'xray-fold is-folded' : 'xray-fold'} aria-hidden="true" />
                <bdi>{label}</bdi>
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
