import {describe, expect, test} from 'vitest';
import type {StepFacts} from '../src/model/stepFacts';
import {marksOnBar} from '../src/view/time/badSteps';
import {stepTexts, stepTitle} from '../src/view/time/stepTexts';

const PLAIN: StepFacts = {end: 'update', optimizers: ['Adam'], passes: 1, recorded: 1};
const NOTHING = {optimizers: null, passes: null, end: null};
const GAN = {chosen: null, offered: ['Adam', 'Adam #2']};
const ONE = {chosen: null, offered: []};

describe('the time bar says of a step', () => {
  test.each([
    ['nothing where nothing is known', null, ONE, NOTHING],
    ['nothing of one pass and one update', PLAIN, ONE, NOTHING],
    ['nothing of a step that is a pass', {...PLAIN, end: 'pass', optimizers: []}, ONE, NOTHING],
    ['nothing of a step that was marked', {...PLAIN, end: 'mark', optimizers: []}, ONE, NOTHING],
    ['its passes', {...PLAIN, passes: 4, recorded: 4}, ONE, {...NOTHING, passes: '4 passes'}],
    ['how many were recorded', {...PLAIN, passes: 200, recorded: 4}, ONE, {...NOTHING, passes: '4 of 200 passes recorded'}],
    ['that its pass was not recorded', {...PLAIN, recorded: 0}, ONE, {...NOTHING, passes: '0 of 1 pass recorded'}],
    ['its optimizer, where there are several', PLAIN, GAN, {...NOTHING, optimizers: 'Adam'}],
    ['not what was chosen', PLAIN, {...GAN, chosen: 'Adam'}, NOTHING],
    ['its optimizers', {...PLAIN, optimizers: ['Muon', 'AdamW']}, ONE, {...NOTHING, optimizers: 'Muon, AdamW'}],
    ['how many more', {...PLAIN, optimizers: ['SGD', 'SGD #2', 'SGD #3']}, ONE, {...NOTHING, optimizers: 'SGD and 2 more'}],
    ['that its update was skipped', {...PLAIN, end: 'skipped'}, ONE, {...NOTHING, end: 'update skipped'}],
    ['that it has no update', {...PLAIN, end: 'unfinished', optimizers: []}, ONE, {...NOTHING, end: 'no update'}],
  ] as [string, StepFacts | null, typeof GAN, typeof NOTHING][])('%s', (_, facts, choice, expected) => {
    expect(stepTexts(facts, choice)).toEqual(expected);
  });
});

describe('the tooltip of a step says what a step is', () => {
  test.each([
    ['an update', PLAIN, /^A step is one update of the parameters.*\nMade by: Adam\.$/],
    ['a skipped one', {...PLAIN, end: 'skipped'}, /This update was skipped.*\nOptimizer: Adam\.$/],
    ['a pass', {...PLAIN, end: 'pass', optimizers: []}, /^Each step is one pass through the model: it was not ended by an update/],
    ['a mark', {...PLAIN, end: 'mark', optimizers: []}, /^Each step ends where the training calls watcher\.step_done\(\)\.$/],
    ['of many passes', {...PLAIN, passes: 1200, recorded: 4}, /\n4 of 1,200 passes recorded\.$/],
    ['not known', null, /^$/],
  ] as [string, StepFacts | null, RegExp][])('%s', (_, facts, expected) => expect(stepTitle(facts)).toMatch(expected));
});

test('a step in the middle is marked in the middle of the bar', () => {
  expect(marksOnBar([{from: 49.5, to: 50.5}], 100)).toEqual([{left: 49.4, width: 1.2}]);
});
