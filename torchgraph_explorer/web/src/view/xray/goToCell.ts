/** The way from a cell to its module and step. */

import {goToModule} from '../goToPlace';
import {keepXray} from './shownXray';

/** Chooses the step, selects the module's first call, and shows its panel, beside which the x-ray stays. */
export function goToCell(module: string, step: number): void {
  keepXray();
  goToModule(module, step);
}
