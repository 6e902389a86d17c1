/** Where NaN or infinity came up first, in the header; a press goes there. */

import './FirstTrouble.css';

import type {FirstNonFinite} from '../../api/types';
import {placeText} from '../../findings/names';
import {earlierOrigin} from '../../findings/places';
import {tensorNameOf} from '../../graph/labels';
import {firstText, troubleTitle} from '../../graph/troubleText';
import {found} from '../findings/found';
import {goToFinding} from '../findings/goToFinding';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {goToTrouble} from './goToTrouble';
import {Icon} from '../controls/Icon';

/** With an input as its module calls it. */
function named({step, tensor}: FirstNonFinite): FirstNonFinite {
  const isInput = tensor?.role === 'input';
  return {step, tensor: isInput ? {...tensor, path: tensorNameOf(shown.graph.value, tensor.module, tensor.path)} : tensor};
}

export function FirstTrouble() {
  const known = shown.nonfinite.value;
  const data = shown.data.value;
  if (!known?.first || !data) return null;
  const {first} = known;
  const className = data.session?.class_name ?? choices.model.value ?? '';
  const {what, place} = firstText(named(first), className);
  const origin = earlierOrigin(found.value?.findings ?? [], first.step);
  return (
    <button
      type="button"
      class="first-trouble"
      style={{'--letters': `First ${what}`.length}}
      title={troubleTitle(known, data.steps)}
      onClick={() => (origin ? goToFinding(origin) : goToTrouble(first))}
    >
      <Icon name="warning" />
      <span class="first-trouble-text">
        <b>
          <span class="first-trouble-word">First </span>
          {what}
          {choices.optimizer.value !== null && ` (${choices.optimizer.value})`}
        </b>
        {place && <span class="first-trouble-place">: {origin ? placeText(origin, className) : place}</span>}
      </span>
    </button>
  );
}
