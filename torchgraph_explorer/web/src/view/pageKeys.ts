/** Keys that work wherever the focus is, but for text fields and open dialogs. */

import {stepBy} from './state/navigate';
import {PARTS, partKey} from './state/parts';
import * as choices from './state/choices';
import {canvasKeys} from './pane/canvasKeys';
import {chooseRuns, isChoosingRuns} from './comparison/RunsDialog';
import {isHelpOpen} from './Help';
import {isSearching} from './Search';
import {toggle} from './layout/sides';
import {nextTheme} from './header/theme';
import {tensorKeys} from './tensors/keys';

const ACTIONS: Record<string, () => void> = {
  '/': () => (isSearching.value = true),
  '?': () => (isHelpOpen.value = true),
  ',': () => stepBy(-1),
  '.': () => stepBy(1),
  l: () => (choices.step.value = null),
  t: nextTheme,
  c: chooseRuns,
  ...Object.fromEntries(PARTS.map((part) => [partKey(part), () => toggle(part)])),
};

/** Controls that need these keys themselves. */
const OWN_KEYS: readonly (readonly [string, RegExp])[] = [
  ['input:not([type=range]):not([type=radio]), textarea, select, [contenteditable]', /./],
  ['input[type=range], input[type=radio]', /^Arrow/],
  ['button, summary, a, [role=button]', /^(Enter| )$/],
  ['.panel-content *', /^(Arrow|Enter|Escape| )/],
];

export function pageKeys(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isSearching.value || isHelpOpen.value || isChoosingRuns.value) return closeDialog(event);
  const target = event.target instanceof Element ? event.target : null;
  if (OWN_KEYS.some(([where, keys]) => target?.matches(where) && keys.test(event.key))) return;
  if (tensorKeys(event)) return;
  const action = ACTIONS[event.key];
  if (!action) return choices.view.value === 'graph' ? canvasKeys(event) : undefined;
  event.preventDefault();
  action();
}

function closeDialog(event: KeyboardEvent): void {
  if (event.key !== 'Escape') return;
  isSearching.value = false;
  isHelpOpen.value = false;
  isChoosingRuns.value = false;
}
