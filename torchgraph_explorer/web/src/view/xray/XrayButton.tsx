/** Shows the x-ray, or puts it away. */

import * as choices from '../state/choices';
import {isXrayShown} from './shownXray';

export function XrayButton() {
  const isShown = isXrayShown.value;
  return (
    <button type="button" class="button" aria-pressed={isShown} onClick={() => (choices.xray.value = !isShown)}>
      X-ray
    </button>
  );
}
