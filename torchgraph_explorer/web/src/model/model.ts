/** Fetches the graph in force and the statistics of the current frame, whenever those change. */

import {effect, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import {fetchFrame, fetchGraph, messageOf} from '../api/client';
import {keepCurrent} from '../api/current';
import type {FrameStatistics, ModuleGraph} from '../api/types';
import {chosenModel} from '../view/state/live';
import * as store from '../view/state/choices';

/** Statistics of every series at the current frame; an earlier frame's until those have come. */
export const frameStatistics: Signal<FrameStatistics | null> = signal(null);
/** Why what is on show is not up to date, as a sentence. */
export const requestProblem: Signal<string | null> = signal(null);

const wantGraph = keepCurrent<ModuleGraph>(telling('The graph'));
const wantFrame = keepCurrent<FrameStatistics>(telling('The statistics of this step'));

export function startFollowing(): void {
  effect(followGraph);
  effect(followFrame);
}

function followGraph(): void {
  const info = store.graphInfo.value;
  const model = chosenModel();
  if (info === null || model === null) return wantGraph(null);
  wantGraph({
    place: JSON.stringify([model, store.data.value?.epoch, info.graph]),
    version: info.revision,
    fetch: (signal) => fetchGraph(model, info.graph, signal),
    show: (graph) => {
      requestProblem.value = null;
      store.graph.value = graph;
    },
  });
}

function followFrame(): void {
  const frame = store.currentFrame.value;
  const model = chosenModel();
  if (model === null || frame === null) {
    frameStatistics.value = null;
    requestProblem.value = null;
    return wantFrame(null);
  }
  wantFrame({
    place: JSON.stringify([model, store.data.value?.epoch, store.frame.value === null ? 'latest' : frame]),
    version: frame,
    fetch: (signal) => fetchFrame(model, frame, signal),
    show: (answer) => {
      requestProblem.value = null;
      frameStatistics.value = answer;
    },
  });
}

function telling(what: string): (cause: unknown) => void {
  return (cause) => void (requestProblem.value = `${what} could not be fetched: ${messageOf(cause)} Trying again.`);
}
