import {describe, expect, test} from 'vitest';
import type {NewFrames, StepKind, Updates} from '../src/api/types';
import {usualGraph} from '../src/model/data';
import {skippedFrames, stepFacts} from '../src/model/stepFacts';
import {applyUpdates, joinedUpdates, knownAfter} from '../src/model/updates';
import {frameAtStep, stepToChoose} from '../src/steps';
import {backOff} from '../src/view/state/live';
import {series} from './fixtures';

function updates(fields: Partial<Updates>): Updates {
  return {
    run: 'r',
    model: 'm',
    epoch: 0,
    reset: false,
    session: null,
    frames: {first: 2, step: [], time: [], clock: [], graph: [], kind: [], passes: []},
    kinds: [],
    optimizers: [],
    series: {first: 1, items: []},
    more: false,
    graphs: [],
    finished: null,
    warnings: [],
    ...fields,
  };
}

const FIRST = updates({
  reset: true,
  frames: {first: 0, step: [0, 10], time: [1, 2], clock: [null, null], graph: [null, 0], kind: [null, null], passes: [[0, 0], [0, 0]]},
  series: {first: 0, items: [series(0, {})]},
});
const HELD = applyUpdates(null, FIRST);

describe('an answer', () => {
  test('is all there is at first', () => {
    expect(HELD).toMatchObject({epoch: 0, steps: [0, 10], times: [1, 2], graphIds: [null, 0], series: [{series: 0}]});
  });

  test('without news leaves what is held as it is', () => expect(applyUpdates(HELD, updates({}))).toBe(HELD));

  test('adds its frames and series to what is held', () => {
    const frames: NewFrames = {first: 2, step: [20], time: [3], clock: [0.5], graph: [0], kind: [null], passes: [[0, 0]]};
    const after = applyUpdates(HELD, updates({frames, series: {first: 1, items: [series(1, {})]}}));
    expect(after.steps).toEqual([0, 10, 20]);
    expect(after.clock).toEqual([null, null, 0.5]);
    expect(after.series.map((one) => one.series)).toEqual([0, 1]);
  });

  test('that comes twice does not add its frames twice', () => {
    const late = updates({frames: {first: 1, step: [10, 20], time: [2, 3], clock: [null, null], graph: [0, 0], kind: [null, null], passes: [[0, 0], [0, 0]]}});
    expect(applyUpdates(HELD, late).steps).toEqual([0, 10, 20]);
  });

  test('that came in two is one', () => {
    const more = {...FIRST, more: true};
    expect(knownAfter(more)).toEqual({epoch: 0, frames: 2, series: 1});
    const frames: NewFrames = {first: 2, step: [20], time: [3], clock: [0.5], graph: [0], kind: [null], passes: [[0, 0]]};
    const rest = updates({frames, series: {first: 1, items: [series(1, {})]}});
    const whole = applyUpdates(null, joinedUpdates(more, rest));
    expect(joinedUpdates(more, rest)).toMatchObject({more: false, reset: true});
    expect(whole.steps).toEqual([0, 10, 20]);
    expect(whole.series.map((one) => one.series)).toEqual([0, 1]);
    expect(joinedUpdates(more, updates({reset: true, epoch: 1}))).toMatchObject({epoch: 1, frames: {step: []}});
  });

  test('of another epoch replaces what is held', () => {
    const frames: NewFrames = {first: 0, step: [5], time: [9], clock: [null], graph: [1], kind: [null], passes: [[0, 0]]};
    const after = applyUpdates(HELD, updates({epoch: 1, reset: true, frames, series: {first: 0, items: []}}));
    expect(after).toMatchObject({epoch: 1, steps: [5], series: []});
  });

  test('says how each of its steps ended', () => {
    const kinds: StepKind[] = [{kind: 0, end: 'update', optimizers: ['Adam']}, {kind: 3, end: 'skipped', optimizers: ['Adam #2']}];
    const frames = {...updates({}).frames, step: [20, 30], time: [3, 4], clock: [null, null], graph: [0, 0]};
    const news = updates({frames: {...frames, kind: [3, 0], passes: [[200, 4], [1, 1]]}, kinds, optimizers: ['Adam', 'Adam #2']});
    const after = applyUpdates(HELD, news);
    const adam = {end: 'update', optimizers: ['Adam'], passes: 1, recorded: 1};
    const other = {end: 'skipped', optimizers: ['Adam #2'], passes: 200, recorded: 4};
    expect([0, 1, 2, 3].map((frame) => stepFacts(after, frame))).toEqual([null, null, other, adam]);
    expect([skippedFrames(after), after.optimizers]).toEqual([[2], ['Adam', 'Adam #2']]);
  });

  test('tells that the session has ended', () => {
    expect(applyUpdates(HELD, updates({finished: {time: 4, notes: []}})).finished).toEqual({time: 4, notes: []});
  });

  test('tells that the training is gone, without a step', () => {
    const stopped = applyUpdates(HELD, updates({stopped: true}));
    expect([HELD.stopped, stopped.stopped, applyUpdates(stopped, updates({})).stopped]).toEqual([false, true, false]);
  });
});

test.each([
  [[], 5, null],
  [[0, 10, 20], 10, 1],
  [[0, 10, 20], 15, 1],
  [[0, 10, 20], 99, 2],
  [[5, 10], 1, 0],
])('of the steps %j the frame at step %i is %s', (steps, step, frame) => expect(frameAtStep(steps, step)).toBe(frame));

test('failures make the waits longer, up to a quarter of a minute', () => {
  expect([1, 2, 3, 4, 5, 9].map(backOff)).toEqual([1000, 2000, 4000, 8000, 15000, 15000]);
});

test.each([
  ['nothing is known', [null, null], null],
  ['two take turns', [0, 1, 0, 1, 0, 1], 0],
  ['one is rare', [1, 1, 0, 1], 1],
  ['the model was changed for good', [...Array<number>(50).fill(0), ...Array<number>(15).fill(1)], 1],
])('the usual graph when %s', (_, ids, expected) => expect(usualGraph(ids)).toBe(expected));

test.each([
  [0, 0],
  [1, 10],
  [2, null],
  [9, null],
  [-4, 0],
])('choosing frame %i chooses the step %s, the last one follows the latest', (frame, step) => {
  expect(stepToChoose([0, 10, 20], frame)).toBe(step);
});
