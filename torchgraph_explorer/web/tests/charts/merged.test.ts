import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import type {SeriesHistory} from '../../src/api/types';
import {entryOf, mergedText} from '../../src/history';
import {linePoints, linesOf} from '../../src/charts/lines';
import {sceneOf} from '../../src/charts/scene';
import {stepSummary, summaryOf} from '../../src/charts/summary';
import {timeAxis} from '../../src/charts/timeAxis';
import {tipFacts} from '../../src/charts/tipFacts';
import {measureNamed} from '../../src/statistics';
import {CHART_DEFAULTS} from '../../src/charts/options';

const STEPS = [0, 10, 20, 30, 40, 50, 60];

/** Frames 0 to 2 in one bin, 4 to 5 in another, and 6 alone; the second has a NaN at frame 5. */
function merged(): SeriesHistory {
  const history = historyFrom([[1, 3], null, null, null, [2, NaN], null, [5]]);
  const [lowest, highest] = [history.statistics.slice(), history.statistics.slice()];
  const mean = 8;
  lowest[mean] = -7;
  highest[mean] = 9;
  const [last, counts, bad] = [Uint32Array.of(2, 5, 6), Uint32Array.of(3, 2, 1), Uint32Array.of(2 ** 32 - 1, 5, 2 ** 32 - 1)];
  return {...history, unit: 32, last, merged: counts, bad, lowest, highest};
}

describe('a merged history', () => {
  test.each([[0, 0], [1, 0], [2, 0], [3, -1], [4, 1], [5, 1], [6, 2], [7, -1]])('has frame %i in entry %i', (frame, entry) => {
    expect(entryOf(merged(), frame)).toBe(entry);
  });

  test('says which steps an entry stands for', () => {
    expect([0, 1, 2].map((entry) => mergedText(merged(), entry, STEPS))).toEqual(['steps 0–20, merged', 'steps 40–50, merged', null]);
  });

  test('says in words how many steps it has, and where something was first not finite', () => {
    const text = 'w: 6 steps, 0 to 60; values from 1 to 5; NaN or infinite values, first at step 50.';
    expect(summaryOf('w', merged(), STEPS)).toBe(text);
    expect(stepSummary(merged(), 5, STEPS)).toBe('steps 40–50, merged: mean 2, std 0, 1 NaN or infinite');
  });

  test('tells of a column at which step something was first not finite', () => {
    const axis = timeAxis('step', {steps: STEPS, times: [], clock: []});
    const scene = sceneOf({history: merged(), options: CHART_DEFAULTS, axis, width: 300});
    expect(tipFacts(scene, 4, null, STEPS).slice(-2)).toEqual([['NaN', '1'], ['first at step', '50']]);
    expect(scene.nonfinite).toEqual([scene.columns.of[5]]);
  });

  test('is a line of what was usual, with how far it went at single steps', () => {
    const points = linePoints(merged(), measureNamed('mean'));
    expect(points.map(({value, low, high}) => [value, low, high])).toEqual([[2, -7, 9], [2, 2, 2], [5, 5, 5]]);
  });

  test('is a line that breaks where a whole bin is without the series', () => {
    const binOf = (frame: number) => [0, 0, 0, 1, 2, 2, 3][frame]!;
    const lines = linesOf(linePoints(merged(), measureNamed('mean')), binOf);
    expect(lines.map((line) => line.map(({frame}) => frame))).toEqual([[0], [4, 6]]);
  });
});
