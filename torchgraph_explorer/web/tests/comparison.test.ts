import {describe, expect, test} from 'vitest';
import type {ModuleGraph, SeriesInfo} from '../src/api/types';
import {timeAxis} from '../src/charts/timeAxis';
import type {TimeKind} from '../src/charts/timeAxis';
import {frameBeside, jointAxis} from '../src/comparison/alignment';
import {runLetter, withRun} from '../src/comparison/choice';
import {graphDifference, outermost} from '../src/comparison/differences';
import {matchSeries} from '../src/comparison/matching';
import {shortened, shortNames} from '../src/comparison/names';
import {distance} from '../src/comparison/distance';
import {outlinesOf} from '../src/comparison/outlines';
import {moduleMap, parseRenames} from '../src/comparison/renames';
import {CHART_DEFAULTS} from '../src/charts/options';

describe('names of runs', () => {
  test.each([
    ['dates', ['2026-11-21_08-43-04', '2026-11-21_09-10-00'], ['08-43-04', '09-10-00']],
    ['settings', ['sweep/lr=0.1_wd=0', 'sweep/lr=0.01_wd=0'], ['lr=0.1', 'lr=0.01']],
    ['one that is the beginning of another', ['sweep/net', 'sweep/net_big'], ['net', 'net_big']],
    ['one that is the end of another', ['run_net', 'run_big_net'], ['net', 'big_net']],
    ['a long middle', ['lr-0.1-weight-decay-0.01-seed-1', 'lr-0.3-weight-decay-0.01-seed-2'], ['0.1…seed-1', '0.3…seed-2']],
    ['a short middle stays', ['lr=0.1_wd=0_seed=1', 'lr=0.3_wd=0_seed=2'], ['lr=0.1_wd=0_seed=1', 'lr=0.3_wd=0_seed=2']],
    ['a middle of another length stays', ['a_weight_decay_b_0', 'c_weight_decay_1'], ['a_weight_decay_b_0', 'c_weight_decay_1']],
    ['one alone', ['sweep/lr=0.1'], ['sweep/lr=0.1']],
    ['equal names', ['a_b', 'a_b'], ['a_b', 'a_b']],
    ['nothing in common', ['adam', 'sgd'], ['adam', 'sgd']],
  ])('are shortened to what differs: %s', (_, names, short) => expect(shortened(names)).toEqual(short));

  test('have the model where the models differ', () => {
    expect(shortNames([{run: 'a', model: 'net'}, {run: 'a', model: 'critic'}])).toEqual(['net', 'critic']);
    expect(shortNames([{run: 'x_1', model: 'net'}, {run: 'x_2', model: 'critic'}])).toEqual(['1 · net', '2 · critic']);
  });

  test('have letters that go on after Z', () => expect([0, 25, 26, 31].map(runLetter)).toEqual(['A', 'Z', 'AA', 'AF']));

  test('keep their number while others come and go', () => {
    const two = withRun(withRun([], {run: 'a', model: 'm'}), {run: 'b', model: 'm'});
    const again = withRun(two.slice(1), {run: 'c', model: 'm'});
    expect(again.map(({run, number}) => [run, number])).toEqual([['b', 2], ['c', 1]]);
    expect(withRun(again, {run: 'c', model: 'm'})).toBe(again);
  });
});

describe('renamed modules', () => {
  test.each([
    ['by their own names', '', ['a', 'b'], ['b', 'c'], [['b', 'b']]],
    ['by a star', 'layer1.* = stage1.*', ['layer1.0', 'layer1.0.conv'], ['stage1.0', 'stage1.0.conv'], [['layer1.0', 'stage1.0'], ['layer1.0.conv', 'stage1.0.conv']]],
    ['by a rule read backwards', 'layer1.* = stage1.*', ['stage1.0'], ['layer1.0'], [['stage1.0', 'layer1.0']]],
    ['shifted, each once', 'l1 = l2; l2 = l3', ['l1', 'l2'], ['l1', 'l2', 'l3'], [['l1', 'l2'], ['l2', 'l3']]],
    ['by two stars', 'a.*.b.* = c.*.*', ['a.1.b.2'], ['c.1.2'], [['a.1.b.2', 'c.1.2']]],
    ['by their own names where the renamed one is not there', 'a = z', ['a'], ['a'], [['a', 'a']]],
  ])('are matched %s', (_, rules, ours, theirs, expected) => {
    expect([...moduleMap(ours, theirs, parseRenames(rules).rules)]).toEqual(expected);
  });

  test('say which lines are no rule', () => {
    const {rules, problem} = parseRenames('a = b\nc\n# no rule\nd.* = e');
    expect(rules).toEqual([{from: 'a', to: 'b'}]);
    expect(problem).toContain('"c", "d.* = e"');
  });
});

function series(number: number, module: string, path = 'output'): SeriesInfo {
  return {series: number, module, call: 0, role: 'output', path, kind: 'value'};
}

test('Series of two runs are matched, and what has no counterpart is listed', () => {
  const ours = [series(0, 'conv'), series(1, 'conv', 'output[1]'), series(2, 'head')];
  const theirs = [series(0, 'extra'), series(1, 'fc'), series(2, 'conv')];
  const {series: matched, onlyOurs, onlyTheirs} = matchSeries(ours, theirs, parseRenames('head = fc').rules);
  expect([...matched].map(([one, other]) => [one, other.series])).toEqual([[0, 2], [2, 1]]);
  expect(onlyOurs).toEqual([{module: 'conv', tensors: ['output[1]']}]);
  expect(onlyTheirs).toEqual([{module: 'extra', tensors: []}]);
});

test.each([
  ['', 'layer1 -> layer2#2', '', 'stage1 -> stage2#2'],
  ['', '@mask -> layer1', '', '@mask -> stage1'],
  ['layer1', ':input[0] -> 0 #2', 'stage1', ':input[0] -> 0 #2'],
  ['layer1', '0 -> /head', 'stage1', '0 -> /head'],
  ['head', '/layer1.0 -> :output', 'head', '/stage1.0 -> :output'],
])('A rename map renames the container and the ends of edges: %s, %s', (module, path, other, otherPath) => {
  const edge = (number: number, inside: string, ends: string): SeriesInfo => ({...series(number, inside, ends), role: 'edge', kind: 'grad_norm'});
  const [ours, theirs] = [['', 'layer1', 'layer1.0', 'layer2', 'head'], ['', 'stage1', 'stage1.0', 'stage2', 'head']];
  const named = (names: string[]): SeriesInfo[] => names.map((name, i) => series(i + 1, name));
  const {rules} = parseRenames('layer1.* = stage1.*; layer2.* = stage2.*');
  const matched = matchSeries([edge(0, module, path), ...named(ours)], [edge(0, other, otherPath), ...named(theirs)], rules);
  expect([matched.series.get(0)?.path, matched.onlyOurs, matched.onlyTheirs]).toEqual([otherPath, [], []]);
});

function axis(kind: TimeKind, steps: number[], clock: (number | null)[] = steps.map(() => null)) {
  return timeAxis(kind, {steps, times: steps.map((step) => 1000 + step), clock, start: 1000});
}

describe('runs on one time axis', () => {
  test('share its ends', () => {
    const [one, other] = [axis('step', [0, 10, 20]), axis('step', [0, 100])];
    const joint = jointAxis(one, [one, other], 'step');
    expect([joint.low, joint.high]).toEqual([-50, 150]);
    expect(joint.values).toBe(one.values);
  });

  test('are not on one that they do not have', () => {
    const [one, other] = [axis('clock', [0, 1], [0, 0.5]), axis('clock', [0, 1])];
    expect([...jointAxis(other, [one, other], 'clock').values]).toEqual([NaN, NaN]);
  });

  test.each([
    ['the same step', axis('step', [0, 5, 10]), 1, axis('step', [0, 5, 10]), 1],
    ['the nearest logged step', axis('step', [0, 1, 2, 3, 4, 5, 6]), 3, axis('step', [0, 7]), 0],
    ['the later of two that are as near', axis('step', [0, 5]), 1, axis('step', [0, 4, 6]), 2],
    ['the nearest of the clock', axis('clock', [0, 100], [0, 2]), 1, axis('clock', [0, 10, 20], [0, 1.9, 3]), 1],
    ['the step where only one has the clock', axis('clock', [0, 100], [0, 2]), 1, axis('clock', [0, 99, 400]), 1],
    ['none without frames', axis('step', [0]), 0, axis('step', []), null],
  ])('stand beside each other at %s', (_, ours, frame, theirs, expected) => {
    expect(frameBeside(ours, frame, theirs)).toBe(expected);
  });
});

describe('histograms of several runs', () => {
  const half = {histogram: {buckets: [500, 508], counts: [5, 5]}, bounds: {low: 0.001, high: 1}};

  test('are outlines of shares, whatever the number of elements', () => {
    const double = {...half, histogram: {...half.histogram, counts: [50, 50]}};
    const {shares} = outlinesOf([half, double, null], {...CHART_DEFAULTS, range: 'full'});
    expect(shares[0]).toEqual(shares[1]);
    expect(shares[2]).toBeNull();
    expect(shares[0]!.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
  });

  test.each([
    ['equal', {buckets: [500, 502], counts: [10, 30]}, {buckets: [500, 502], counts: [1, 3]}, 0],
    ['twice as large', {buckets: [500], counts: [4]}, {buckets: [504], counts: [9]}, 1 / 3],
    ['of other signs', {buckets: [500], counts: [4]}, {buckets: [-500], counts: [9]}, 1],
    ['zeros alone', {buckets: [0], counts: [4]}, {buckets: [500], counts: [9]}, 1],
  ])('are apart: %s', (_, one, other, expected) => expect(distance(one, other)).toBeCloseTo(expected, 2));

  test('have no distance from one without elements', () => expect(distance({buckets: [], counts: []}, {buckets: [2], counts: [9]})).toBeNaN());
});

function graphOf(modules: Record<string, (number | null)[]>): ModuleGraph {
  const names = Object.keys(modules);
  const tensor = (path: string, shape: (number | null)[]) => ({path, shape, dtype: 'float32', requires_grad: true});
  return {
    ...{graph: 0, revision: 0, first_step: 0, nodes: [], edges: []},
    modules: names.map((name) => ({
      ...{name, class_name: 'Linear', class_path: 'torch.nn.Linear', extra_repr: [], params: []},
      ...{own_params: 0, total_params: 0, trainable_params: 0},
    })),
    calls: names.map((name, module) => ({module, call: 0, parent: null, inputs: [], outputs: [tensor('output', modules[name]!)]})),
  };
}

test('Graphs differ by modules and shapes, but not by sizes that varied', () => {
  const found = graphDifference(graphOf({a: [32, 8], b: [32, 4], old: [1]}), graphOf({a: [null, 8], b: [32, 5], new: [1], 'new.0': [1]}), []);
  expect([...found.onlyOurs]).toEqual(['old']);
  expect(outermost(found.onlyTheirs)).toEqual(['new']);
  expect([...found.shapes]).toEqual([['b', [{tensor: 'output', ours: '[32, 4]', theirs: '[32, 5]'}]]]);
});
