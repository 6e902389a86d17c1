/** Which page takes the middle of the screen. */

import type {JSX} from 'preact';
import {Segments} from '../controls/Select';
import * as choices from '../state/choices';
import type {View} from '../../tensors/choice';
import {hasKept} from './store';

export function ViewTabs(): JSX.Element {
  const view = choices.view.value;
  const tensors = hasKept.value || view === 'tensors' ? [{value: 'tensors', label: 'Tensors'}] : [];
  const options = [{value: 'graph', label: 'Graph'}, ...tensors, {value: 'network', label: 'Network'}];
  return <Segments label="Page" value={view} options={options} onChoose={(to) => (choices.view.value = to as View)} />;
}
