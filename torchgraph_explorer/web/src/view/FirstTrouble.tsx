/** Where NaN or infinity came up first, in the header; a press goes there. */

import {firstText, troubleTitle} from '../graph/troubleText';
import {nonfinite} from '../state/nonfinite';
import * as store from '../state/store';
import {goToTrouble} from './goToTrouble';
import {Icon} from './Icon';

export function FirstTrouble() {
  const known = nonfinite.value;
  const data = store.data.value;
  if (!known?.first || !data) return null;
  const {first} = known;
  const {what, place} = firstText(first, data.session?.class_name ?? store.model.value ?? '');
  return (
    <button
      type="button"
      class="first-trouble"
      title={troubleTitle(known, data.steps)}
      onClick={() => goToTrouble(first)}
    >
      <Icon name="warning" />
      <span class="first-trouble-text">
        <b>
          <span class="first-trouble-word">First </span>
          {what}
        </b>
        {place && <span class="first-trouble-place">: {place}</span>}
      </span>
    </button>
  );
}
