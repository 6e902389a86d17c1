/** Which page takes the middle of the screen. */

import './ViewTabs.css';

import type {JSX} from 'preact';
import {Segments, Select} from '../controls/Select';
import * as choices from '../state/choices';
import type {View} from '../../tensors/choice';
import {hasKept, kept} from './store';

/** All in sight where there is room, else a list. */
export function ViewTabs(): JSX.Element {
  const value = choices.view.value;
  const tensors = hasKept.value || kept.value.note || value === 'tensors' ? [{value: 'tensors', label: 'Tensors'}] : [];
  const options = [{value: 'graph', label: 'Graph'}, ...tensors, {value: 'network', label: 'Network'}];
  const shared = {label: 'Page', value, options, onChoose: (to: string) => void (choices.view.value = to as View)};
  return (
    <div class="view-tabs">
      <Segments {...shared} />
      <Select {...shared} isBare />
    </div>
  );
}
