/** The histories of the model on show. */

import {computed} from '@preact/signals';

import {fetchHistory} from '../api/client';
import {chosenModel} from '../state/live';
import {data} from '../state/store';
import {Histories, type Source} from './histories';

const source = computed<Source | null>(() => {
  const [model, held] = [chosenModel(), data.value];
  return model === null || held === null ? null : {model, epoch: held.epoch, frames: held.steps.length};
});

/** Shared by all panels, so that a series on two of them is fetched once. */
export const liveHistories = new Histories(source, fetchHistory);
