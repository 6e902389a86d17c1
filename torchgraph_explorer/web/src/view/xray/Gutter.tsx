/** The names of the rows, and the buttons that fold them. */

import type {JSX} from 'preact';
import {labelledRows} from '../../xray/tree';
import {rows, toggleFold} from './store';

const LABEL_PX = 13;
const LEAST_FOR_PATHS = 90;

export function Gutter({width, height}: {width: number; height: number}): JSX.Element {
  const all = rows.value;
  const rowHeight = height / Math.max(1, all.length);
  const shown = labelledRows(all, rowHeight, LABEL_PX);
  const named = new Set(shown.map((at) => all[at]!.module.name));
  /** With the name of the module around it where that has no room. */
  const labelOf = (at: number): string => {
    const {name, label} = all[at]!.module;
    const around = name.slice(0, Math.max(0, name.length - label.length - 1));
    return around === '' || named.has(around) || width < LEAST_FOR_PATHS ? label : `${around.slice(around.lastIndexOf('.') + 1)}.${label}`;
  };
  return (
    <ul class="xray-gutter" aria-label="Modules of the x-ray" style={{width: `${width}px`, height: `${height}px`}}>
      {shown.map((at) => {
        const {module, isFolded} = all[at]!;
        const top = Math.min(height - LABEL_PX, Math.max(0, rowHeight >= LABEL_PX ? (at + 0.5) * rowHeight - LABEL_PX / 2 : at * rowHeight));
        const style = {top: `${top}px`, paddingLeft: `${Math.min(module.depth, 6) * 7}px`};
        const label = labelOf(at);
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
