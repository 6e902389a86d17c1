/** The page of tensors that were kept whole: on the left which, on the right what is in it. */

import './tensors.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {IconButton} from '../controls/Icon';
import {windowSize} from '../layout/sides';
import {MenuButton, Popover} from '../pane/GraphPane';
import {OwnView} from '../own/OwnView';
import {ownView} from '../own/views';
import * as choices from '../state/choices';
import {ViewTabs} from './ViewTabs';
import * as shown from '../state/shown';
import {fullName, shapeOf} from '../../tensors/names';
import {Dependencies} from './Dependencies';
import * as store from './store';
import {openBeside, TensorList} from './TensorList';
import {ValuePanel} from './ValuePanel';

/** Below this, the list lies over the tensor, as long as it is open. */
const LEAST_BESIDE = 760;

export function TensorsPage(): JSX.Element {
  const isNarrow = windowSize.value.width < LEAST_BESIDE;
  const isOpen = useSignal(false);
  const isOwn = choices.view.value === 'own';
  const hasList = store.hasKept.value || (!isOwn && !store.isKnown.value);
  const current = store.current.value;
  const info = store.info.value;
  const title = current === null ? (isOwn && ownView.value?.name) || 'Tensors' : fullName(shown.graph.value, current.info, store.calls.value.length > 1);
  const id = choices.tensors.value.id;
  const lastId = useSignal(id);
  if (lastId.value !== id) {
    lastId.value = id;
    isOpen.value = false; // what was chosen in it is shown
  }
  return (
    <section class="tensors-page" aria-label="Tensors">
      <div class="pane-bar">
        <MenuButton />
        <ViewTabs />
        {isNarrow && hasList && <IconButton icon="menu" label="Kept tensors" onPress={() => (isOpen.value = !isOpen.value)} isExpanded={isOpen.value} />}
        <h2 class="tensor-title" title={title}>
          <bdi>{title}</bdi>
        </h2>
        {info !== null && <span class="dim tensor-shape-text">{shapeOf(info)}</span>}
        <div class="spacer" />
        {store.hasKept.value && (
          <button type="button" class="button" aria-pressed={choices.tensors.value.isGraph} onClick={() => store.change({isGraph: !choices.tensors.value.isGraph})}>
            Dependencies
          </button>
        )}
        {hasList && (
          <>
            <IconButton icon="previous" label="Previous tensor (k)" onPress={() => openBeside(-1)} />
            <IconButton icon="next" label="Next tensor (j)" onPress={() => openBeside(1)} />
          </>
        )}
      </div>
      {store.kept.value.note && <p class="tensor-left-out dim">{store.kept.value.note}</p>}
      {store.keptProblem.value !== null && <p class="tensor-problem">{store.keptProblem.value}</p>}
      <div class="tensors-columns">
        {hasList && (!isNarrow || isOpen.value) && <TensorList />}
        <div class="tensors-main">
          {choices.tensors.value.isGraph && store.hasKept.value && <Dependencies />}
          {isOwn ? <OwnView key={choices.ownView.value} /> : <ValuePanel />}
        </div>
      </div>
      <Popover />
    </section>
  );
}
