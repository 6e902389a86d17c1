/** The way to a finding: its step, its node, the panel of that, and its words. */

import {batch} from '@preact/signals';
import type {Finding} from '../../api/types';
import {findingKey} from '../../findings/names';
import {goToPlace} from '../goToPlace';
import {reveal} from '../layout/sides';
import {lookAtNode} from '../pinning';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {keysOfFinding} from './found';

/** Shows a finding. One of the whole run is told above the panels. */
export function goToFinding(finding: Finding): void {
  const keys = keysOfFinding(finding);
  const last = keys.at(-1);
  batch(() => {
    choices.finding.value = findingKey(finding);
    if (!(shown.data.value?.steps ?? []).includes(finding.step)) choices.optimizer.value = null;
    reveal('panels');
    goToPlace(finding.step, keys, () => last !== undefined && showUncalled(last));
  });
}

/** A module that is not called at the step is in the tree alone, and its parameters in the panel. */
function showUncalled(key: string): void {
  batch(() => {
    lookAtNode(key);
    choices.selected.value = key;
  });
}
