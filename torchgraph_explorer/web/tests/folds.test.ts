import {describe, expect, test} from 'vitest';
import {foldedMark, isStack, loopsOf, nodesOf, resolved, stripCells, turnFor, turnOf, turnText} from '../src/graph/folds';
import type {Mark} from '../src/graph/nonfinite';
import type {Layout, ModuleGraph} from '../src/api/types';
import {overCalls} from '../src/charts/overCalls';
import {STATISTICS} from '../src/api/types';
import type {Row} from '../src/statistics';

/** An input, and `cell` and `head` called in turn, five times each: nodes 1 to 10. */
const CALLS = 5;
const GRAPH = {
  graph: 0,
  revision: 0,
  first_step: 0,
  modules: ['', 'cell', 'head'].map((name) => ({name, class_name: name})),
  calls: [{module: 0, call: 0, parent: null}, ...Array.from({length: 2 * CALLS}, (_, i) => ({module: 1 + (i % 2), call: Math.floor(i / 2), parent: 0}))],
  nodes: [{kind: 'input', inside: 0, call: null, tensor: {path: 'input[0]'}}, ...Array.from({length: 2 * CALLS}, (_, i) => ({kind: 'call', inside: 0, call: i + 1, tensor: null}))],
  edges: Array.from({length: 2 * CALLS}, (_, i) => ({source: i, target: i + 1, gradient: true})),
} as unknown as ModuleGraph;

const even = (from: number): number[] => Array.from({length: CALLS}, (_, i) => from + 2 * i);
const LAYOUT: Layout = {
  width: 100,
  height: 100,
  approximate: null,
  nodes: [
    {node: 0, x: 0, y: 0, width: 10, height: 10},
    {node: 1, x: 0, y: 20, width: 10, height: 10, all: even(1)},
    {node: 2, x: 0, y: 40, width: 10, height: 10, all: even(2)},
  ],
  edges: [
    {edge: 0, points: [], is_stub: false},
    {edge: 1, points: [], is_stub: false, all: even(1)},
    {edge: 2, points: [], is_stub: false, all: even(2).slice(0, -1)},
  ],
  loops: [[1, 2]],
};

describe('a stack', () => {
  test('is of calls of different modules, and a loop is not', () => {
    const block = GRAPH.calls.findIndex(({parent}) => parent === null);
    const graph = {...GRAPH, calls: [...GRAPH.calls, {...GRAPH.calls[block]!, module: 1}, {...GRAPH.calls[block]!, module: 2}]};
    const nodes = [...graph.nodes, ...[2, 1].map((back) => ({kind: 'call' as const, inside: null, call: graph.calls.length - back, tensor: null}))];
    const last = nodes.length - 1;
    expect(isStack({...graph, nodes}, [last - 1, last])).toBe(true);
    expect(isStack({...graph, nodes}, [last, last])).toBe(false);
    expect(isStack({...graph, nodes}, [last])).toBe(false);
  });
});

describe('a loop', () => {
  test('shows its first call until another is chosen', () => {
    expect(loopsOf(GRAPH, LAYOUT, {})).toEqual([{key: 'cell#0', nodes: [1, 2], count: 5, chosen: 0, isStack: false}]);
    expect(resolved(GRAPH, LAYOUT, {}).nodes.map(({node}) => node)).toEqual([0, 1, 2]);
  });

  test('shows the chosen call of each of its nodes, and the edges of these', () => {
    const {nodes, edges} = resolved(GRAPH, LAYOUT, {'cell#0': 3});
    expect(nodes.map(({node}) => node)).toEqual([0, 7, 8]);
    expect(edges.map(({edge}) => edge)).toEqual([0, 7, 6]);
    expect(nodes.map((one) => nodesOf(one).length)).toEqual([1, 5, 5]);
  });

  test.each([
    ['a choice beyond the last call', 99, [0, 9, 10]],
    ['a choice before the first', -1, [0, 1, 2]],
  ])('takes %s for the nearest', (_, chosen, expected) => {
    expect(resolved(GRAPH, LAYOUT, {'cell#0': chosen}).nodes.map(({node}) => node)).toEqual(expected);
  });

  test('leaves a layout without loops as it is', () => {
    const {loops, ...plain} = LAYOUT;
    expect(resolved(GRAPH, plain, {'cell#0': 3})).toBe(plain);
  });

  test('brings the turns of modules together that are not called equally often', () => {
    expect([0, 50, 99].map((chosen) => turnOf({chosen, count: 100}, 10))).toEqual([0, 5, 9]);
    expect([0, 5, 9].map((turn) => turnFor({count: 100}, 10, turn))).toEqual([0, 55, 99]);
  });

  test.each([
    ['all calls are recorded', 412, 412, 999, 998, '413 of 999'],
    ['only some are', 1040, 1025, 1208, 19_999, '#1,041, 1,026 of 1,208 recorded'],
  ])('says which call it is where %s', (_, call, turn, count, last, expected) => {
    expect(turnText(call, turn, count, last)).toBe(expected);
  });
});

describe('what is seen of all calls', () => {
  const mark = (facts: Partial<Mark>): Mark => ({hasNan: false, hasInfinite: false, isGradientOnly: false, isInside: false, tensors: [], more: 0, ...facts});

  test('a mark tells how many hold NaN or infinity, and the first', () => {
    const marks = new Map([
      [5, mark({hasNan: true})],
      [9, mark({hasInfinite: true, isInside: true})],
    ]);
    expect(foldedMark(even(1), marks)).toEqual(mark({hasNan: true, hasInfinite: true, tensors: ['NaN ∞ in 2 of 5 calls, the first is #3']}));
    expect(foldedMark(even(2), marks)).toBeNull();
  });

  test('the strip shows the largest value of neighbours, and never hides NaN', () => {
    expect(stripCells([0, 0.5, null, 0.2, 'bad', 1], 3)).toEqual([0.5, 0.2, 'bad']);
    expect(stripCells([null, null, 0.1], 60)).toEqual([null, null, 0.1]);
    expect(stripCells([], 60)).toEqual([]);
  });
});

describe('the chart of all calls', () => {
  const row = (more: Partial<Row>): Row => ({...(Object.fromEntries(STATISTICS.map((name) => [name, 0])) as Row), count: 4, sampled: 4, ...more});
  const calls = (...rows: (Row | null)[]) => rows.map((one, call) => ({call, row: one}));

  test('has a line of means between bands of spread and range', () => {
    const found = overCalls(calls(row({min: -1, max: 1, mean: 0, std: 0.5}), row({min: 0, max: 3, mean: 1, std: 5})), false);
    expect(found).toMatchObject({low: -1, high: 3, isLog: false, bad: []});
    expect(found.mean).toBe('M250,75L750,50');
    expect(found.spread).toBe('M250,62.5L750,0L750,75L250,87.5Z');
    expect(found.range).toBe('M250,50L750,0L750,75L250,100Z');
  });

  test('breaks where a call is not recorded, and marks NaN', () => {
    const found = overCalls(calls(row({mean: 1, max: 2}), null, row({mean: NaN, nan: 4, sampled: 0})), false);
    expect(found.mean.match(/M/g)).toHaveLength(1);
    expect(found.bad).toEqual([2]);
  });

  test.each([
    ['spread over many magnitudes', [1e-6, 1e-3, 1], true],
    ['alike', [1, 2, 3], false],
    ['not there', [], false],
  ])('has a logarithmic scale for norms that are %s', (_, means, isLog) => {
    const found = overCalls(calls(...means.map((mean) => row({mean, min: 0, max: mean}))), true);
    expect(found.isLog).toBe(isLog);
    expect(`${found.mean}${found.range}${found.spread}`).not.toMatch(/NaN|Infinity/);
  });
});
