/** The way from a cell to its module and step. */

import {batch} from '@preact/signals';
import {goToPlace} from '../goToPlace';
import {lookAtNode} from '../pinning';
import * as choices from '../state/choices';
import {keepXray} from './shownXray';

/** Chooses the step, selects the module's first call, and shows its panel. */
export function goToCell(module: string, step: number): void {
  const key = `${module}#0`;
  keepXray();
  goToPlace(step, [key], () => batch(() => (lookAtNode(key), (choices.selected.value = key))));
}
