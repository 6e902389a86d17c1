import {describe, expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import {bandsOf, type BandPoint} from '../../src/charts/bands';
import {columnsOf} from '../../src/charts/columns';
import {linePoints, linesOf} from '../../src/charts/lines';
import {stepSummary, summaryOf} from '../../src/charts/summary';
import {measureNamed} from '../../src/statistics';

const columns = columnsOf([0.5, 1.5, 2.5, 3.5], 4);

describe('bands', () => {
  test('break where a series has no finite element', () => {
    const bands = bandsOf(historyFrom([[1], [NaN], [2], [2]]), columns);
    expect(bands.map((piece) => piece.map(({column}) => column))).toEqual([[0], [2, 3]]);
  });

  test('of frames in one column are those of all their elements', () => {
    const bands = bandsOf(historyFrom([[1], [3], [NaN]]), columnsOf([0.1, 0.2, 0.3], 1));
    const [{values}] = bands.flat() as [BandPoint];
    expect([values[0], values[3], values.at(-1)]).toEqual([expect.closeTo(1, 1), expect.closeTo(1.25), 3]);
  });
});

describe('lines', () => {
  test('break where there is no number and where the series is missing', () => {
    const points = linePoints(historyFrom([[1], [NaN], [3], null, [5], [6]]), measureNamed('mean'));
    expect(linesOf(points).map((line) => line.map(({value}) => value))).toEqual([[1], [3], [5, 6]]);
  });
});

describe('a strip in words', () => {
  const steps = [0, 50, 100];
  test.each([
    {frames: [], text: 'w: nothing recorded.'},
    {frames: [[1, 2]], text: 'w: one step, 0; values from 1 to 2.'},
    {frames: [[1], [NaN], [4]], text: 'w: 3 steps, 0 to 100; values from 1 to 4; NaN or infinite values at 1 step.'},
    {frames: [[1], [2], [3], [4]], text: 'w: 3 steps, 0 to 100; values from 1 to 4.'},
    {frames: [[NaN]], text: 'w: one step, 0; no finite value; NaN or infinite values at 1 step.'},
  ])('says "$text"', ({frames, text}) => {
    expect(summaryOf('w', historyFrom(frames), steps)).toBe(text);
  });

  test('tells the chosen step', () => {
    const history = historyFrom([[1, 3], null, [NaN, 1]]);
    expect([0, 1, 2].map((frame) => stepSummary(history, frame, steps))).toEqual([
      'step 0: mean 2, std 1',
      'step 50: nothing recorded',
      'step 100: mean 1, std 0, 1 NaN or infinite',
    ]);
  });
});
