/** The histories of the model on show. */

import {computed} from '@preact/signals';

import {fetchHistory} from '../api/client';
import {mostBins} from '../view/panels/setting';
import {chosenModel} from '../view/state/live';
import {currentFrame, data} from '../view/state/choices';
import {CloseUps} from '../model/closeUps';
import {Histories, type Source} from '../model/histories';

const source = computed<Source | null>(() => {
  const [model, held] = [chosenModel(), data.value];
  return model === null || held === null ? null : {model, epoch: held.epoch, frames: held.steps.length, most: mostBins.value};
});

const chosen = computed(() => {
  const [model, held, frame] = [chosenModel(), data.value, currentFrame.value];
  return model === null || held === null || frame === null ? null : {model, epoch: held.epoch, frame};
});

/** Shared by all panels, so that a series on two of them is fetched once. */
export const liveHistories = new Histories(source, fetchHistory);

export const closeUps = new CloseUps(chosen, fetchHistory);
