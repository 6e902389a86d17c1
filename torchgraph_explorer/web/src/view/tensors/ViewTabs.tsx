/** Which page takes the middle of the screen. */

import './ViewTabs.css';

import {batch} from '@preact/signals';
import type {JSX} from 'preact';
import {Segments, Select} from '../controls/Select';
import {ownView, ownViews} from '../own/views';
import * as choices from '../state/choices';
import type {View} from '../../tensors/choice';
import {hasKept, kept} from './store';

/** Begins the value of a view of the user's own. */
const OWN = 'own:';

function openPage(to: string): void {
  batch(() => {
    choices.view.value = to.startsWith(OWN) ? 'own' : (to as View);
    if (to.startsWith(OWN)) choices.ownView.value = to.slice(OWN.length);
  });
}

/** All in sight where there is room, else a list. */
export function ViewTabs(): JSX.Element {
  const view = choices.view.value;
  const tensors = hasKept.value || kept.value.note || view === 'tensors' ? [{value: 'tensors', label: 'Tensors'}] : [];
  const own = ownViews.value.map(({name}) => ({value: OWN + name, label: name}));
  const options = [{value: 'graph', label: 'Graph'}, ...tensors, {value: 'network', label: 'Network'}, ...own];
  const value = view === 'own' ? OWN + (ownView.value?.name ?? '') : view;
  const shared = {label: 'Page', value, options, onChoose: openPage};
  return (
    <div class="view-tabs">
      <Segments {...shared} />
      <Select {...shared} isBare />
    </div>
  );
}
