import {expect, test} from 'vitest';
import * as store from '../src/view/state/choices';

const graphs = [0, 1, 2].map((graph) => ({graph, first_step: 10 * graph, revision: 0}));
const nothing = {epoch: 0, session: null, series: [], finished: null, warnings: []};

test.each([
  ['the usual one of the latest frames', {}, {automatic: 1, shown: 1}],
  ['that of the chosen frame', {frame: 0}, {automatic: 0, shown: 0}],
  ['the chosen one, which does not change what it would be', {frame: 0, choice: 2}, {automatic: 0, shown: 2}],
  ['the automatic one when the chosen one is not known', {choice: 7}, {automatic: 1, shown: 1}],
])('the graph on show is %s', (_, {frame = null, choice = null}: {frame?: number | null; choice?: number | null}, expected) => {
  const graphIds = [0, 1, 1];
  store.data.value = {...nothing, steps: [0, 1, 2], times: graphIds, clock: graphIds, graphIds, graphs};
  store.frame.value = frame;
  store.graphChoice.value = choice;
  expect({automatic: store.automaticGraph.value?.graph, shown: store.graphInfo.value?.graph}).toEqual(expected);
});
