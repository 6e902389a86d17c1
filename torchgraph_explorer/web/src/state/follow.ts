/** Fetches the graph in force and the statistics of the current frame, whenever those change. */

import {effect, signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import {fetchFrame, fetchGraph, messageOf} from '../api/client';
import {latest} from '../api/latest';
import type {FrameStatistics} from '../api/types';
import {chosenModel} from './live';
import * as store from './store';

const RETRY_MS = 2000;

/** Statistics of every series at the current frame; an earlier frame's until those have come. */
export const frameStatistics: Signal<FrameStatistics | null> = signal(null);
/** Why what is on show is not up to date, as a sentence. */
export const requestProblem: Signal<string | null> = signal(null);

const graphRequest = latest();
const frameRequest = latest();
/** What the graph and the statistics on show were fetched for. */
let graphSource = '';
let frameSource = '';

export function startFollowing(): void {
  effect(followGraph);
  effect(followFrame);
}

function followGraph(): void {
  const info = store.graphInfo.value;
  const model = chosenModel();
  if (info === null || model === null) return;
  const source = JSON.stringify([model, store.data.value?.epoch, info.graph, info.revision]);
  if (source === graphSource && store.graph.peek() !== null) return;
  graphRequest.start(
    (signal) => fetchGraph(model, info.graph, signal),
    (graph) => {
      graphSource = source;
      requestProblem.value = null;
      store.graph.value = graph;
    },
    retryLater('The graph', followGraph),
  );
}

function followFrame(): void {
  const frame = store.currentFrame.value;
  const model = chosenModel();
  if (model === null || frame === null) {
    frameRequest.abort();
    frameSource = '';
    frameStatistics.value = null;
    return;
  }
  const source = JSON.stringify([model, store.data.value?.epoch, frame]);
  if (source === frameSource) return;
  frameRequest.start(
    (signal) => fetchFrame(model, frame, signal),
    (answer) => {
      frameSource = source;
      requestProblem.value = null;
      frameStatistics.value = answer;
    },
    retryLater('The statistics of this step', followFrame),
  );
}

function retryLater(what: string, again: () => void): (cause: unknown) => void {
  return (cause) => {
    requestProblem.value = `${what} could not be fetched: ${messageOf(cause)} Trying again.`;
    setTimeout(again, RETRY_MS);
  };
}
