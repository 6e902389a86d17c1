/** Leads from the graph to the gradient flow; nothing where no model is behind the server. */

import {hasFlow, isAway} from './state';

export function FlowButton() {
  if (!hasFlow.value) return null;
  return (
    <button type="button" class="button" onClick={() => (isAway.value = false)}>
      Flow
    </button>
  );
}
