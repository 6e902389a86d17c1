import {describe, expect, it, test} from 'vitest';

import type {ModuleGraph, SeriesInfo} from '../src/api/types';
import {edgeKey, edgeName, edgeOf, endsOf, flowOf, flowText, gradientsByName, NARROWEST, seriesOfEdge, widthScale, WIDEST} from '../src/graph/edges';
import {parseKey} from '../src/graph/keys';
import {seriesOfNode} from '../src/model/series';
import {rowAt} from '../src/statistics';

const module = (name: string, class_name = 'Linear') =>
  ({name, class_name, class_path: class_name, extra_repr: [], params: [], own_params: 0, total_params: 0, trainable_params: 0, forward_parameters: ['x']}) as const;
const tensor = (path: string) => ({path, shape: [2], dtype: 'float32', requires_grad: true});

const graph = {
  graph: 0,
  revision: 0,
  first_step: 0,
  modules: [module('', 'Net'), module('a'), module('b')],
  calls: [
    {module: 0, call: 0, parent: null, inputs: [tensor('input[0]')], outputs: [tensor('output')]},
    {module: 1, call: 0, parent: 0, inputs: [], outputs: []},
    {module: 1, call: 1, parent: 0, inputs: [], outputs: []},
  ],
  nodes: [
    {kind: 'input', inside: 0, call: null, tensor: tensor('input[0]')},
    {kind: 'call', inside: 0, call: 1, tensor: null},
    {kind: 'call', inside: 0, call: 2, tensor: null},
    {kind: 'output', inside: 0, call: null, tensor: tensor('output')},
  ],
  edges: [
    {source: 0, target: 1, gradient: true, series: [{call: 1, role: 'input', path: 'input[0]'}]},
    {source: 1, target: 2, gradient: true, series: [{call: 0, role: 'edge', path: 'a -> a#2'}, {call: 0, role: 'edge', path: 'a -> a#2 #2'}]},
    {source: 2, target: 3, gradient: true},
  ],
} as unknown as ModuleGraph;

const series: SeriesInfo[] = [
  {series: 0, module: 'a', call: 0, role: 'input', path: 'input[0]', kind: 'value'},
  {series: 1, module: 'a', call: 0, role: 'input', path: 'input[0]', kind: 'grad_norm'},
  {series: 2, module: '', call: 0, role: 'edge', path: 'a -> a#2', kind: 'grad_norm'},
];
const [first, second, third] = graph.edges as [ModuleGraph['edges'][0], ModuleGraph['edges'][0], ModuleGraph['edges'][0]];

test('an edge has a key of its own, which is not that of a node', () => {
  const key = edgeKey(graph, first);
  expect(key).toBe('#0/input[0] → a#0');
  expect(endsOf(key)).toEqual(['#0/input[0]', 'a#0']);
  expect(edgeOf(graph, key)).toBe(first);
  expect(parseKey(key)).toBeNull();
  expect(endsOf('a#0')).toBeNull();
});

test('an edge is named by its ends, as they stand in the drawing', () => {
  expect(edgeName(graph, ['#0/input[0]', 'a#0'])).toBe('x → a');
  expect(edgeName(graph, ['a#0', 'a#1'])).toBe('a → a #2');
  expect(edgeName(null, ['a#0', 'a#1'])).toBe('a#0 → a#1');
});

describe('the series of an edge', () => {
  const byName = gradientsByName(series);
  it('is the gradient of what its target is given', () => expect(seriesOfEdge(graph, first, byName).map((one) => one.series)).toEqual([1]));
  it('is not known while one of several is not recorded', () => expect(seriesOfEdge(graph, second, byName)).toEqual([]));
  it('is none in a record of an earlier release', () => expect(seriesOfEdge(graph, third, byName)).toEqual([]));
  it('is what its panel shows', () => {
    const found = seriesOfNode(series, edgeKey(graph, first), graph);
    expect(found.edge.map(({gradient}) => gradient?.series)).toEqual([1]);
    expect([...found.input, ...found.output]).toEqual([]);
  });
  it('is not shown with the call that the edge is inside of', () => expect(seriesOfNode(series, '#0', graph).edge).toEqual([]));
});

const row = (l2: number, nan = 0) => rowAt(Float32Array.from([4, 4, nan, 0, 0, 0, 0, 1, 1, 1, 1, l2]), 0);

test.each([
  ['several tensors', [row(3), row(4)], {kind: 'value', norm: 5}, '5'],
  ['no gradient at all', [row(0)], {kind: 'zero'}, '0'],
  ['NaN', [row(1, 2)], {kind: 'nonfinite'}, 'NaN or ∞'],
  ['a series without a number at the step', [row(1), null], {kind: 'missing'}, 'not recorded'],
  ['no series', [], {kind: 'missing'}, 'not recorded'],
])('what comes back along an edge: %s', (_, rows, flow, text) => {
  expect(flowOf(rows)).toEqual(flow);
  expect(flowText(flowOf(rows))).toBe(text);
});

describe('widths', () => {
  it('span the gradients from the smallest to the largest', () => {
    const scale = widthScale([1e-6, 1, 1e-3]);
    expect([1e-6, 1e-3, 1].map((norm) => scale?.at(norm))).toEqual([NARROWEST, (NARROWEST + WIDEST) / 2, WIDEST]);
  });
  it('are about the same for gradients that are', () => {
    const scale = widthScale([1, 1.1]);
    expect(scale?.at(1)).toBeGreaterThan(WIDEST - 0.5);
  });
  it('are none without a number', () => expect(widthScale([])).toBeNull());
});
