/** Leads from a tensor in the graph to its kept values. */

import './tensors.css';

import type {JSX} from 'preact';
import type {TensorKey} from '../../api/tensors';
import {idOf} from '../../tensors/names';
import * as store from './store';

/** Nothing where the tensor was not kept. */
export function ValuesLink({series, isShort = false}: {series: TensorKey; isShort?: boolean}): JSX.Element | null {
  const id = idOf(series);
  if (!store.tensors.value.has(id)) return null;
  return (
    <button type="button" class="tensor-link" aria-label={`Values of ${series.path}`} title="Its kept values" onClick={() => store.openTensor(id)}>
      {isShort ? '▦' : 'values'}
    </button>
  );
}
