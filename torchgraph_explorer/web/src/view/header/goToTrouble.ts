/** The way to where NaN or infinity came up first: its step, the inside that holds it, and its panel. */

import type {FirstNonFinite} from '../../api/types';
import {goToPlace} from '../goToPlace';
import {keysOf} from '../pane/marks';
import {seek} from '../panels/sought';

export function goToTrouble({step, tensor}: FirstNonFinite): void {
  if (tensor !== null) seek(tensor);
  goToPlace(step, keysOf(tensor));
}
