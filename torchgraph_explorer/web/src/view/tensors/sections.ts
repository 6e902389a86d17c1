/** Which parts below the picture are open. */

import * as choices from '../state/choices';
import type {Section} from '../../tensors/choice';
import * as store from './store';

export function isOpen(section: Section): boolean {
  return !choices.tensors.value.closed.includes(section);
}

export function toggle(section: Section): void {
  const {closed} = choices.tensors.value;
  store.change({closed: closed.includes(section) ? closed.filter((one) => one !== section) : [...closed, section]});
}
