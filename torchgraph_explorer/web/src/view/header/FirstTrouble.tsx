/** Where NaN or infinity came up first, in the header; a press goes there. */

import type {FirstNonFinite} from '../../api/types';
import {tensorNameOf} from '../../graph/labels';
import {firstText, troubleTitle} from '../../graph/troubleText';
import {nonfinite} from '../../model/nonfinite';
import * as store from '../state/choices';
import {goToTrouble} from './goToTrouble';
import {Icon} from '../controls/Icon';

/** With an input as its module calls it. */
function named({step, tensor}: FirstNonFinite): FirstNonFinite {
  const isInput = tensor?.role === 'input';
  return {step, tensor: isInput ? {...tensor, path: tensorNameOf(store.graph.value, tensor.module, tensor.path)} : tensor};
}

export function FirstTrouble() {
  const known = nonfinite.value;
  const data = store.data.value;
  if (!known?.first || !data) return null;
  const {first} = known;
  const {what, place} = firstText(named(first), data.session?.class_name ?? store.model.value ?? '');
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
