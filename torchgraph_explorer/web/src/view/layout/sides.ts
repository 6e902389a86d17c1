/** Which parts of the screen are shown: beside the graph where there is room, else over it, one at a time. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {PART_NAMES, partKey} from '../state/parts';
import type {Part} from '../state/parts';
import * as choices from '../state/choices';
import {arrange, RAIL_PX} from './arrangement';
import type {Arrangement} from './arrangement';
import {isCompared} from '../../comparison/choice';
import {remembered} from '../controls/Splitter';

/** As the user has set them; a share of 0 is that of the arrangement. */
export const modulesWidth = remembered('sidebar', 248);
export const panelsShare = remembered('panels', 0);

export const windowSize = signal({width: window.innerWidth, height: window.innerHeight});

/** The window has another size. A hidden iframe has none, which is ignored. */
export function measureWindow(): void {
  const {innerWidth: width, innerHeight: height} = window;
  if (width > 0 && height > 0) windowSize.value = {width, height};
}

export const arrangement: ReadonlySignal<Arrangement> = computed(() => {
  const pins = choices.pins.value.length + (choices.scalars.value === true ? 1 : 0) + (isCompared(choices.comparison.value) ? 1 : 0);
  return arrange({
    ...windowSize.value,
    hidden: choices.hidden.value,
    pins,
    columns: pins + (choices.xray.value === true ? 1 : 0),
    modulesWidth: modulesWidth.value,
    panelsShare: panelsShare.value,
  });
});

/** A page that is looked at in a small panel, as in W&B, opens with the x-ray. */
const opened = signal<Part | null>(document.documentElement.dataset['opens'] === 'panels' ? 'panels' : null);

/** The part that lies over the graph; null when none does. */
export const over: ReadonlySignal<Part | null> = computed(() =>
  opened.value !== null && !arrangement.value.isDocked[opened.value] ? opened.value : null,
);

export function isShown(part: Part): boolean {
  return arrangement.value.isDocked[part] || over.value === part;
}

/** Shows a part, or puts it away. */
export function toggle(part: Part): void {
  const {hasRoom, isDocked} = arrangement.value;
  if (!hasRoom[part]) opened.value = over.value === part ? null : part;
  else if (isDocked[part]) choices.hidden.value = [...choices.hidden.value, part];
  else choices.hidden.value = choices.hidden.value.filter((one) => one !== part);
}

export function reveal(part: Part): void {
  if (!isShown(part)) toggle(part);
}

/** Puts away what lies over the graph; false when nothing does. */
export function closeOver(): boolean {
  const isOpen = over.value !== null;
  opened.value = null;
  return isOpen;
}

const LEAST_BESIDE = 160;

/** Something was asked for in what lies over the graph: it is put away where it would hide that. */
export function makeWay(): void {
  const {modulesWidth: modules, panelsWidth: panels} = arrangement.value;
  const width = over.value === 'modules' ? modules : over.value === 'panels' ? panels : 0;
  if (width > 0 && windowSize.value.width - width - 2 * RAIL_PX < LEAST_BESIDE) closeOver();
}

/** The name of the button that shows or hides a part. */
export function toggleLabel(part: Part): string {
  return `${isShown(part) ? 'Hide' : 'Show'} the ${PART_NAMES[part]} (${partKey(part)})`;
}
