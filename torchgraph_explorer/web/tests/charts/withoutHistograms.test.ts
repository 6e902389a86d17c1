import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import type {SeriesHistory} from '../../src/api/types';
import {aroundMean} from '../../src/charts/bands';
import {robustExtent} from '../../src/charts/extent';
import {CHART_DEFAULTS} from '../../src/charts/options';
import {emptiness, sceneOf} from '../../src/charts/scene';
import {barScale} from '../../src/charts/sharedScale';
import {tipFacts} from '../../src/charts/tipFacts';
import {ScenesTogether} from '../../src/comparison/together';
import {isLost, lacksHistograms, rowOfEntry} from '../../src/history';
import {timeAxis} from '../../src/charts/timeAxis';

const FRAMES = [[-1, 0, 0, 3], [2, 2, NaN], [NaN, NaN], []];
const whole = historyFrom(FRAMES);
const without: SeriesHistory = {...whole, offsets: new Uint32Array(FRAMES.length + 1), buckets: new Int16Array(0), counts: new Uint32Array(0)};
const axis = timeAxis('step', {steps: [0, 1, 2, 3], times: [0, 1, 2, 3], clock: [null, null, null, null]});

test('a history lacks histograms only where there are finite elements', () => {
  expect([whole, without, historyFrom([[NaN], []])].map(lacksHistograms)).toEqual([false, true, false]);
});

test('without histograms, what is lost is still only what has no finite element', () => {
  expect(FRAMES.map((_, entry) => isLost(without, entry))).toEqual([false, false, true, false]);
});

test('in place of quantiles stand the extremes, the mean and standard deviations, all within the extremes', () => {
  const row = {...rowOfEntry(whole, 0), sampled: 4, mean: 0.5, std: 1};
  expect(aroundMean([row], {low: -1, high: 3})).toEqual([-1, -1, -0.5, 0.5, 1.5, 2.5, 3]);
});

test('rows are put together by how many elements they are of', () => {
  const row = rowOfEntry(whole, 0);
  const two = [
    {...row, sampled: 1, mean: 0, std: 0},
    {...row, sampled: 3, mean: 4, std: 0},
    {...row, sampled: 0, mean: NaN, std: NaN},
  ];
  const [, , less, mean, more] = aroundMean(two, {low: -100, high: 100});
  expect([less, mean, more]).toEqual([3 - Math.sqrt(3), 3, 3 + Math.sqrt(3)]);
});

describe('a strip without histograms', () => {
  test.each(['heat', 'bands', 'ridge', 'overlay'] as const)('as %s shows statistics, and has the room of the bars', (mode) => {
    const options = {...CHART_DEFAULTS, mode};
    const [scene, before] = [without, whole].map((history) => sceneOf({history, options, axis, width: 400}));
    expect([scene!.content.mode, emptiness(scene!)]).toEqual(['bands', null]);
    expect(scene!.layout.plot.width).toBeGreaterThan(before!.layout.plot.width);
    expect(scene!.scale.high).toBeGreaterThanOrEqual(3);
  });

  test('tells the extremes under the pointer, and says that there is no histogram', () => {
    const scene = sceneOf({history: without, options: CHART_DEFAULTS, axis, width: 400});
    const facts = Object.fromEntries(tipFacts(scene, 0, null));
    expect(Object.keys(facts)).toEqual(['no histogram', 'min … max', 'mean', 'std']);
    expect(facts['min … max']).toBe('−1 … 3');
  });

  test('has an extent and an axis, from the extremes', () => {
    expect(robustExtent(without, 0.1)).toEqual({low: -1, high: 3});
    expect(barScale([without], CHART_DEFAULTS)).toMatchObject({low: -1, high: 3});
  });

  test('beside one with histograms has its width and its axis', () => {
    const input = {options: CHART_DEFAULTS, axis, width: 400, room: {height: 64}};
    const [one, other] = new ScenesTogether([without, whole].map((history) => ({...input, history}))).scenes;
    expect([one!.content.mode, other!.content.mode]).toEqual(['bands', 'heat']);
    expect(one!.layout).toEqual(other!.layout);
    expect([one!.scale.low, one!.scale.high]).toEqual([other!.scale.low, other!.scale.high]);
  });
});
