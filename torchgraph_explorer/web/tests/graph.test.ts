import {describe, expect, test} from 'vitest';
import {colourAt, colourScale, isStrong} from '../src/graph/colours';
import {nodeText, openableCalls, trail, trainableText} from '../src/graph/facts';
import {areaOf, areaToKeep, clip, meet, neighbour, nodeArea, shortened, splineArea, splinePath} from '../src/graph/geometry';
import {ancestors, outlineOf, rowsOf} from '../src/graph/outline';
import type {OutlineModule} from '../src/graph/outline';
import {search} from '../src/graph/search';
import type {Node} from '../src/api/types';
import {GRAPH, module} from './fixtures';

describe('geometry', () => {
  test('a spline is a path of cubic pieces', () => {
    expect(splinePath([[0, 0], [0, 10], [5, 10.04], [5, 20], [5, 30], [6, 30], [6, 40]])).toBe('M0,0C0,10 5,10 5,20C5,30 6,30 6,40');
    expect(splinePath([[0, 0], [1, 1]])).toBe('');
  });

  test('a spline ends earlier where an arrow is put, unless its last piece is shorter than that', () => {
    const line = [[0, 0], [0, 10], [0, 20], [0, 30]] as const;
    expect(splinePath(shortened(line, 14))).toBe('M0,0C0,10 0,6 0,16');
    expect(shortened(line, 30)).toBe(line);
    expect(shortened([[0, 0]], 14)).toEqual([[0, 0]]);
  });

  test.each([
    ['down', 1],
    ['right', 2],
    ['up', null],
    ['left', null],
  ] as const)('%s of the first node is %s', (direction, expected) => {
    const at = (node: number, x: number, y: number) => ({node, x, y, width: 10, height: 10});
    const nodes = [at(0, 0, 0), at(1, 0, 100), at(2, 100, 5), at(3, 60, 90)];
    expect(neighbour(nodes, nodes[0]!, direction)?.node ?? null).toBe(expected);
  });

  test('a text that is too long is cut in its middle', () => {
    expect([clip('conv', 40, 10), clip('layers.11', 60, 10), clip('conv', 20, 10), clip('conv', 15, 10)]).toEqual(['conv', 'lay…11', 'c…', '']);
  });
});

describe('search', () => {
  const items = ['conv1', 'layer1.conv1', 'layer1.conv10', 'layer1.bn1', 'layer2.conv1'].map((name) => ({
    name,
    className: name.includes('bn') ? 'BatchNorm2d' : 'Conv2d',
  }));
  const names = (typed: string): string[] => search(items, typed).items.map(({name}) => name);

  test.each([
    ['conv1', ['conv1', 'layer1.conv1', 'layer2.conv1', 'layer1.conv10']],
    ['layer1 conv', ['layer1.conv1', 'layer1.conv10']],
    ['batchnorm', ['layer1.bn1']],
    ['l2c1', ['layer2.conv1']],
    ['nothing', []],
  ])('%s', (typed, found) => expect(names(typed)).toEqual(found));

  test('offers everything while nothing is typed', () => expect(names(' ')).toHaveLength(5));
});

describe('outline', () => {
  const tree = outlineOf(GRAPH) as OutlineModule;
  const names = (open: string[]): string[] => rowsOf(tree, new Set(open)).map(({module: {label}, depth}) => `${depth}${label}`);

  test('shows a module below its owner when that is unfolded', () => {
    expect(names([])).toEqual(['0Net']);
    expect(names(['', 'block'])).toEqual(['0Net', '1block', '2fc', '2act', '1spare']);
  });

  test('has nothing to unfold in a module without submodules', () => {
    expect(rowsOf(tree, new Set(['', 'spare'])).filter(({isOpen}) => isOpen).map(({module}) => module.name)).toEqual(['']);
  });

  test('knows the calls of a module, and that some are not called', () => {
    expect(tree.children.map(({calls}) => calls)).toEqual([['block#0'], []]);
    expect(tree.children[0]?.children[1]?.calls).toEqual(['block.act#0', 'block.act#1']);
  });

  test('names what is around a module', () => {
    expect([ancestors('a.b.c'), ancestors('a'), ancestors('')]).toEqual([['', 'a', 'a.b'], [''], []]);
  });
});

describe('facts', () => {
  test('a second call is numbered', () => {
    expect(nodeText(GRAPH, GRAPH.nodes[6] as Node)).toEqual({label: 'act #2', detail: 'ReLU', shape: 'N×8'});
  });

  test('a call that holds only placeholders has no inside to open', () => expect([...openableCalls(GRAPH)]).toEqual([0, 1]));

  test('the trail leads from the model to the open call', () => expect(trail(GRAPH, 3)).toEqual([0, 1, 3]));

  test.each([
    [0, 0, ''],
    [10, 10, 'trainable'],
    [10, 4, 'partly frozen'],
    [10, 0, 'frozen'],
  ])('of %i parameters %i trainable: %j', (total_params, trainable_params, text) => {
    expect(trainableText(module('m', 'M', {total_params, trainable_params}))).toBe(text);
  });
});

describe('colours by value', () => {
  test('go from nothing to the largest value', () => {
    const scale = colourScale([1, 2, 4], false)!;
    expect([scale.isLog, scale.at(0), scale.at(2), scale.at(4)]).toEqual([false, 0, 0.5, 1]);
  });

  test('are logarithmic over wide spreads, with zero at the low end', () => {
    const scale = colourScale([0, 1e-4, 1], false)!;
    expect([scale.isLog, scale.at(0), scale.at(1)]).toEqual([true, 0, expect.closeTo(1)]);
    expect(scale.at(1e-2)).toBeCloseTo(0.5);
  });

  test('diverge from zero where the sign means something', () => {
    const scale = colourScale([-1, 3], true)!;
    expect([scale.at(-3), scale.at(0), scale.at(3)]).toEqual([0, 0.5, 1]);
  });

  test.each([[[]], [[NaN, Infinity]]])('do not exist for %j', (values) => expect(colourScale(values, false)).toBeNull());

  test('of equal values are all the same', () => expect(colourScale([0, 0], false)!.at(0)).toBe(0));

  test('mix two neighbouring stops', () => {
    expect(colourAt(0.375, false)).toBe('color-mix(in oklab, var(--seq-2) 50%, var(--seq-1))');
    expect(colourAt(1, true)).toBe('color-mix(in oklab, var(--div-4) 100%, var(--div-3))');
  });

  test('ask for inverse writing where they are strong', () => {
    expect([isStrong(0.9, false), isStrong(0.1, false), isStrong(0.1, true), isStrong(0.5, true)]).toEqual([true, false, true, false]);
  });
});

describe('what is kept in the page of a large drawing', () => {
  const pane = {width: 100, height: 100};
  const seen = areaOf(pane, {k: 1, x: 0, y: 0});
  const kept = areaToKeep(seen, null);

  test('is what is seen and something around it', () => {
    expect(kept).toEqual({left: -60, top: -60, right: 160, bottom: 160});
    expect(meet(nodeArea({node: 0, x: 150, y: 50, width: 20, height: 20}), kept)).toBe(true);
    expect(meet(splineArea([[200, 0], [200, 5], [200, 6], [200, 9]]), kept)).toBe(false);
  });

  test('stays the same for a small move', () => expect(areaToKeep(areaOf(pane, {k: 1, x: -40, y: 40}), kept)).toBe(kept));

  test.each([
    ['a large move', {k: 1, x: -400, y: 0}],
    ['a closer look', {k: 8, x: 0, y: 0}],
    ['a look from afar', {k: 0.1, x: 0, y: 0}],
  ])('changes for %s', (_, view) => expect(areaToKeep(areaOf(pane, view), kept)).not.toEqual(kept));
});
