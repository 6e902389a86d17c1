/** What is written beside the rows of the x-ray, where there is little room. */

import {clip} from '../../graph/geometry';
import type {TreeModule} from '../../xray/tree';

const SHORTEST_PATH = 12;
const MOST_INDENT = 7;
/** Of the width beside the rows; the rest is for the names. */
const INDENTS_SHARE = 0.3;

/** How far a row is indented, in pixels: modules of all depths, down to the `deepest` on show, leave room for their names. */
export function indentOf(depth: number, {deepest, width}: {deepest: number; width: number}): number {
  return depth * Math.min(MOST_INDENT, (INDENTS_SHARE * width) / Math.max(1, deepest));
}

/**
 * What is written beside a row, in at most `letters`: behind the name of the module around it where no row has that (`named` are
 * those on show). Names are cut at their beginning where they have two parts, and else in the middle, since they differ at the ends.
 */
export function rowLabel({name, label}: TreeModule, named: ReadonlySet<string>, letters: number): string {
  const around = name.slice(0, Math.max(0, name.length - label.length - 1));
  if (around === '' || named.has(around) || letters < SHORTEST_PATH) return clip(label, Math.max(2, letters), 1);
  const path = `${around.slice(around.lastIndexOf('.') + 1)}.${label}`;
  if (path.length <= letters) return path;
  return letters - 1 > label.length + 1 ? `…${path.slice(1 - letters)}` : clip(label, letters, 1); // else nothing is left of what is around
}

/** The height of a label's letters. */
export const LABEL_PX = 13;
const PRESSED_PX = 24;

/** How far a place that is pressed reaches above and below its middle, in pixels. */
export interface Pressed {
  above: number;
  below: number;
}

/** As high as can be pressed well, between places whose `middles` are so far down: never over the middle between two. */
export function pressedPlaces(middles: readonly number[]): Pressed[] {
  const half = (one: number | undefined, other: number | undefined): number =>
    one === undefined || other === undefined ? PRESSED_PX / 2 : Math.min(PRESSED_PX / 2, (other - one) / 2);
  return middles.map((middle, at) => ({above: half(middles[at - 1], middle), below: half(middle, middles[at + 1])}));
}

/** The room that each label takes: a finger needs more of it than a mouse. */
export function labelRoom(isCoarse: boolean): number {
  return isCoarse ? PRESSED_PX : LABEL_PX;
}
