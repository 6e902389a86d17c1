import {describe, expect, test} from 'vitest';
import type {Layout, ModuleGraph, PlacedNode} from '../src/api/types';
import {arrivalsOf, departuresOf} from '../src/graph/stubs';
import {GRAPH} from './fixtures';

const at = (node: number, x: number, y: number, height = 46): PlacedNode => ({node, x, y, width: 100, height});

function graphOf(ends: [number, number][]): ModuleGraph {
  return {...GRAPH, edges: ends.map(([source, target]) => ({source, target, gradient: true}))};
}

function layoutOf(nodes: PlacedNode[], stubs: number[], edges: number): Layout {
  const points: [number, number][] = [[0, 0], [0, 1], [0, 2], [0, 3]];
  return {width: 0, height: 0, approximate: null, nodes, edges: Array.from({length: edges}, (_, edge) => ({edge, points, is_stub: stubs.includes(edge)}))};
}

describe('the labels of stubs', () => {
  test('stand on the left of the target, and the count on the right of the source', () => {
    const layout = layoutOf([at(0, 0, 0), at(1, 0, 100), at(2, 0, 200)], [1], 2);
    const graph = graphOf([[0, 1], [0, 2]]);
    expect(arrivalsOf(graph, layout)).toEqual([{target: 2, sources: [0], edges: [1], from: [-66, 200], to: [-51, 200]}]);
    expect(departuresOf(graph, layout)).toEqual([{source: 0, targets: [2], edges: [1], at: [55, 0]}]);
  });

  test.each([
    ['a call', 46, 3, [[0], [1], [2]]],
    ['a call', 46, 5, [[0], [1], [2, 3, 4]]],
    ['a tensor', 30, 2, [[0], [1]]],
    ['a tensor', 30, 4, [[0], [1, 2, 3]]],
    ['a flat node', 10, 3, [[0, 1, 2]]],
  ])('at %s of height %d, %d stubs are labelled as %j', (_, height, count, expected) => {
    const target = at(9, 0, 500, height);
    const graph = graphOf(Array.from({length: count}, (_, source) => [source, 9]));
    const found = arrivalsOf(graph, layoutOf([target], [...Array(count).keys()], count));
    expect(found.map(({edges}) => edges)).toEqual(expected);
    expect(found.reduce((sum, {to}) => sum + to[1], 0) / found.length).toBeCloseTo(500);
  });

  test('are none without stubs', () => {
    const layout = layoutOf([at(0, 0, 0), at(1, 0, 100)], [], 1);
    expect([arrivalsOf(graphOf([[0, 1]]), layout), departuresOf(graphOf([[0, 1]]), layout)]).toEqual([[], []]);
  });
});
