import {expect, test} from 'vitest';

import {historyFrom} from '../../gallery/samples';
import {CHART_DEFAULTS} from '../../src/charts/options';
import type {ChartOptions} from '../../src/charts/options';
import {barScale} from '../../src/charts/sharedScale';
import {timeAxis} from '../../src/charts/timeAxis';
import {ScenesTogether} from '../../src/comparison/together';

const STEPS = [0, 1, 2, 3];
const axis = timeAxis('step', {steps: STEPS, times: STEPS, clock: STEPS.map(() => null)});
const sound = historyFrom(STEPS.map(() => [-1, 0.2, 0.5, 2]));
const grown = historyFrom([[1], [1e9], [1e18], [1e27]]);
const broken = historyFrom([[1], [1e27], [NaN], [NaN]]);

function highEnd(options: Partial<ChartOptions>, other = broken): number {
  const all = {...CHART_DEFAULTS, ...options};
  if (all.mode === 'ridge') return barScale([sound, other], all).high;
  const inputs = [sound, other].map((history) => ({history, options: all, axis, width: 400}));
  return new ScenesTogether(inputs).scenes[0]!.scale.high;
}

test.each(['heat', 'bands', 'line', 'ridge'] as const)('a run that comes to NaN leaves the others room, as %s', (mode) => {
  expect(highEnd({mode})).toBeLessThan(2e4);
  expect(highEnd({mode, range: 'full'})).toBeGreaterThan(1e26);
});

test('finite runs have an axis as long as all of them', () => {
  expect(highEnd({mode: 'line'}, grown)).toBeGreaterThan(1e17);
});
