import {describe, expect, test} from 'vitest';
import {NOTHING_KEPT} from '../../src/api/tensors';
import type {TensorGraph} from '../../src/api/tensors';
import {TENSOR_DEFAULTS, tensorChoiceIn} from '../../src/tensors/choice';
import {between, drawingOf, layersOf, linksAt, linksOf, scaleOf} from '../../src/tensors/dependencies';
import {callsOf, groupsOf, idOf, labelsOf, parseId, stepsOf, tensorsOf, variantIn, variantOf} from '../../src/tensors/names';
import {arranged, networkRows} from '../../src/tensors/network';
import {GRAPH, module} from '../fixtures';
import {info} from './parts';

const ALL = [
  info(),
  info({kind: 'grad_norm'}),
  info({kind: 'grad_norm', loss: 'actor'}),
  info({call: 1}),
  info({call: null, role: 'param', path: 'weight'}),
  info({module: '', role: 'attached', path: 'energy'}),
];
const KEPT = {...NOTHING_KEPT, tensors: ALL, layouts: [[0, 1], [0, 2, 3, 4, 5]], steps: [0, 10, 20], layout: [0, 1, 0], labels: ['eval', null, null]};

describe('kept tensors', () => {
  const tensors = tensorsOf(KEPT);

  test('are found by module, role and path', () => {
    const id = idOf({module: 'a|b', call: null, role: 'param', path: "x['y']"});
    expect(parseId(id)).toEqual({module: 'a|b', call: null, role: 'param', path: "x['y']"});
  });

  test.each(['', 'x', '[]', '["a",-1,"output","output"]', '["a",0,"other","output"]'])('are not found by %j', (text) => expect(parseId(text)).toBeNull());

  test('have their values and gradients in one place', () => {
    const one = tensors.get(idOf(info()))!;
    expect(one.variants.map(variantOf)).toEqual(['value', 'gradient', 'loss:actor']);
    expect(variantOf(variantIn(one, 'loss:actor'))).toBe('loss:actor');
    expect(variantOf(variantIn(tensors.get(idOf(info({call: 1})))!, 'loss:actor'))).toBe('value');
  });

  test('are listed by module, without later calls', () => {
    expect(groupsOf(tensors.values(), '').map(({module, tensors}) => [module, tensors.map(({info: {path}}) => path)])).toEqual([
      ['fc', ['weight', 'output']],
      ['', ['energy']],
    ]);
    expect(groupsOf(tensors.values(), 'FC weig').flatMap((one) => one.tensors).length).toBe(1);
  });

  test('attached several times under one name are listed in order, also if later steps had more of them', () => {
    const paths = ['memory', 'memory #2', 'loss', 'memory #10', 'memory #3'];
    const found = tensorsOf({...KEPT, tensors: paths.map((path) => info({module: '', role: 'attached', path}))});
    const listed = groupsOf(found.values(), '').flatMap(({tensors}) => tensors.map(({info: {path}}) => path));
    expect(listed).toEqual(['memory', 'memory #2', 'memory #3', 'memory #10', 'loss']);
  });

  test('have calls, steps and labels', () => {
    expect(callsOf(KEPT, idOf(info()))).toEqual([0, 1]);
    expect([callsOf(KEPT, idOf(info()), 0), callsOf(KEPT, idOf(info()), 10)]).toEqual([[0], [0, 1]]);
    expect([stepsOf(KEPT, info()), stepsOf(KEPT, info({call: 1})), stepsOf(KEPT, info({loss: 'critic'}))]).toEqual([[0, 10, 20], [10], []]);
    expect([stepsOf(KEPT, info(), 'eval'), labelsOf(KEPT)]).toEqual([[0], ['eval']]);
  });
});

test.each(['sample=x&beside=what:3&at=1,x&zoom=nonsense&pick=-1&look=odd&facets=1.5&sort=up&large=x', ''])('an address that says %j chooses nothing', (text) => {
  expect(tensorChoiceIn(new URLSearchParams(text))).toEqual(TENSOR_DEFAULTS);
});

/** `x → a → b → loss`, with parameters of `a` and of `b`, and one that nothing uses. */
const names = ['x', 'w.a', 'w.b', 'spare', 'a', 'b', 'loss'];
const kinds = ['input', 'parameter', 'parameter', 'parameter', 'intermediate', 'intermediate', 'loss'] as const;
const DEPENDENCIES: TensorGraph = {
  step: 0,
  tensors: names.map((path, i) => ({module: '', call: null, role: 'attached', path, kind: kinds[i]!, node: ''})),
  nodes: names.map((name, i) => ({key: name, name, kind: kinds[i]!, module: '', call: null, tensors: [i]})),
  edges: [
    [0, 4, 0],
    [1, 4, 1],
    [4, 5, 1],
    [2, 5, 1],
    [5, 6, 1],
  ],
};

describe('the dependency graph', () => {
  const links = linksOf(DEPENDENCIES);

  test('goes from left to right, with parameters beside what uses them', () => {
    expect(layersOf(kinds, links)).toEqual([0, 0, 1, 0, 1, 2, 3]);
  });

  test('has no two boxes in one place', () => {
    const {places} = drawingOf(DEPENDENCIES, links);
    expect(new Set(places.map(({x, y}) => `${x} ${y}`)).size).toBe(names.length);
  });

  test.each([
    ['as large as wanted', 0.8, {width: 900, height: 300}, {x: 0.8, y: 0.8, isLegible: true}],
    ['smaller than names can be read', 0.2, {width: 900, height: 300}, {x: 0.2, y: 0.2, isLegible: false}],
    ['no larger than it is', 'fit', {width: 9000, height: 3000}, {x: 1, y: 1, isLegible: true}],
    ['as a whole, in its form', 'fit', {width: 800, height: 300}, {x: 0.8, y: 0.8, isLegible: true}],
    ['as a whole, pressed together where it is wide', 'fit', {width: 10, height: 300}, {x: 0.01, y: 1, isLegible: false}],
    ['as a whole, pressed together where it is high', 'fit', {width: 900, height: 20}, {x: 0.9, y: 0.1, isLegible: false}],
  ] as const)('is drawn %s', (_, zoom, room, scale) => {
    expect(scaleOf(zoom, {places: [], width: 1000, height: 200}, room)).toEqual(scale);
  });

  test('survives a circle', () => {
    const circle = {...DEPENDENCIES, edges: [...DEPENDENCIES.edges, [6, 4, 1] as [number, number, 0 | 1]]};
    expect(layersOf(kinds, linksOf(circle)).every(Number.isFinite)).toBe(true);
  });

  test('has the nodes between two', () => {
    expect([...between(links, 0, 6)].map((node) => names[node])).toEqual(['x', 'a', 'b', 'loss']);
    expect([...between(links, 3, 6)]).toEqual([]);
  });

  test('tells the links of the tensor from those of others in its node', () => {
    const shared = {...DEPENDENCIES, nodes: [...DEPENDENCIES.nodes.slice(0, 4), {...DEPENDENCIES.nodes[4]!, tensors: [4, 5]}, DEPENDENCIES.nodes[6]!]};
    expect(linksAt(shared, 4, 4).map(({from, to, isOwn}) => [from, to, isOwn])).toEqual([
      [0, 4, true],
      [1, 4, true],
      [2, 4, false],
      [4, 5, false],
    ]);
  });
});

describe('the network', () => {
  const modules = [module('', 'Net', {total_params: 100}), module('block', 'Block', {total_params: 75}), module('block.fc', 'Linear', {total_params: 75, own_params: 75}), module('spare', 'Linear')];
  const rows = networkRows({...GRAPH, modules, calls: GRAPH.calls.slice(0, 2)});
  const named = (found: typeof rows): string[] => found.map((row) => row.module.name);

  test('is a tree with shares of all parameters', () => {
    expect(rows.map(({depth, share, calls}) => [depth, share, calls])).toEqual([
      [0, 1, 1],
      [1, 0.75, 1],
      [2, 0.75, 0],
      [1, 0, 0],
    ]);
  });

  test('is folded, searched and sorted', () => {
    const folded = new Set(['block']);
    expect(named(arranged(rows, {order: 'tree', words: '', folded}))).toEqual(['', 'block', 'spare']);
    expect(named(arranged(rows, {order: 'tree', words: 'linear', folded}))).toEqual(['block.fc', 'spare']);
    expect(named(arranged(rows, {order: 'own', words: '', folded}))[0]).toBe('block.fc');
  });
});
