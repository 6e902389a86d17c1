/** Shows the scalars, or puts them away; nothing where there are none. */

import * as choices from '../state/choices';
import {areScalarsShown, hasScalars} from './shownScalars';

export function ScalarsButton() {
  if (!hasScalars.value) return null;
  const isShown = areScalarsShown.value;
  return (
    <button type="button" class="button" aria-pressed={isShown} onClick={() => (choices.scalars.value = !isShown)}>
      Scalars
    </button>
  );
}
