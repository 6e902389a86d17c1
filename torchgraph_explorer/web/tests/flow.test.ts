import {describe, expect, test} from 'vitest';

import {tableOf, stepOf} from '../src/view/flow/colour';
import {cellAt, cellOf, elementOf, elementText, firstLead, flatPlace, groupElement, groupOf, isWithin, layoutMaps, nearestCell, placeOf} from '../src/flow/maps';
import {layoutSankey} from '../src/flow/sankey';
import type {PairLinks, SankeyOptions} from '../src/flow/sankey';

const pair = (values: number[], rest: number, past: number[]): PairLinks => ({
  source: values.map((_, i) => i % 2),
  target: values.map((_, i) => i % 3),
  value: values,
  past,
  total: values.reduce((sum, value) => sum + Math.abs(value), rest),
});

const options = (pairs: (PairLinks | null)[], more: Partial<SankeyOptions> = {}): SankeyOptions => ({
  groups: [2, 3, 2],
  pairs,
  most: 10,
  passes: () => true,
  width: 400,
  height: 200,
  ...more,
});

describe('a Sankey diagram', () => {
  const links = pair([-4, 3, 2, 1], 5, [1, -1]);

  test.each([
    ['all links', {}],
    ['few links', {most: 1}],
    ['links above a threshold', {passes: (size: number, largest: number) => size > largest / 2}],
  ])('hides nothing: with %s, the shares of a pair add up to the whole', (_, more) => {
    const {links: drawn} = layoutSankey(options([links, pair([1], 0, [0, 0, 0])], more));
    for (const number of [0, 1]) {
      const shares = drawn.filter((link) => link.pair === number).map(({share}) => share);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
    }
  });

  test('gathers in one link what is not drawn by itself, and has one for what leads past', () => {
    const {links: drawn} = layoutSankey(options([links, null], {most: 2}));
    expect(drawn.map(({kind, value}) => [kind, value])).toEqual([
      ['link', -4],
      ['link', 3],
      ['rest', 8],
      ['past', 2],
    ]);
  });

  test('has no other links where all are drawn', () => {
    const {links: drawn} = layoutSankey(options([pair([1, 1], 0, [0, 0]), null]));
    expect(drawn.map(({kind}) => kind)).toEqual(['link', 'link']);
  });

  test('places the nodes of a column by their position, within the height, the others last', () => {
    const {nodes} = layoutSankey(options([links, null], {most: 3}));
    const first = nodes.filter(({column}) => column === 0);
    expect(first.map(({group}) => group)).toEqual([0, 1, null, null]);
    first.slice(1).forEach((node, i) => expect(node.y).toBeGreaterThanOrEqual(first[i]!.y + first[i]!.height));
    for (const {y, height} of nodes) expect(y + height).toBeLessThanOrEqual(200);
  });

  test('draws two thousand links without overlapping nodes', () => {
    const values = Array.from({length: 2000}, (_, i) => 1 / (i + 1));
    const many: PairLinks = {source: values.map((_, i) => i), target: values.map((_, i) => 1999 - i), value: values, past: [], total: 9};
    const {nodes, links: drawn} = layoutSankey(options([many], {groups: [2000, 2000], most: 2000}));
    expect(drawn).toHaveLength(2001);
    const left = nodes.filter(({column}) => column === 0);
    left.slice(1).forEach((node, i) => expect(node.y).toBeGreaterThan(left[i]!.y));
    expect(Math.max(...left.map(({y, height}) => y + height))).toBeLessThanOrEqual(200);
  });

  test('of nothing is empty', () => {
    expect(layoutSankey(options([null, null]))).toEqual({nodes: [], links: []});
  });
});

describe('the maps of a tensor', () => {
  test.each([
    {shape: [2, 6, 4, 5], lead: ['1', 'all'], cell: {map: 3, row: 2, column: 4}, element: [1, 3, 2, 4]},
    {shape: [2, 6, 4, 5], lead: ['1', '5'], cell: {map: 0, row: 2, column: 4}, element: [1, 5, 2, 4]},
    {shape: [3, 7], lead: [], cell: {map: 0, row: 2, column: 6}, element: [2, 6]},
    {shape: [7], lead: [], cell: {map: 0, row: 0, column: 6}, element: [6]},
    {shape: [], lead: [], cell: {map: 0, row: 0, column: 0}, element: []},
  ])('lead from a cell to its element and back: $shape $lead', ({shape, lead, cell, element}) => {
    expect(elementOf(shape, lead, cell)).toEqual(element);
    expect(cellOf(shape, lead, element)).toEqual(cell);
  });

  test('that are not shown have no cell', () => {
    expect(cellOf([2, 6, 4, 5], ['0', 'all'], [1, 0, 0, 0])).toBeNull();
  });

  test('have the pixel of each cell', () => {
    const layout = layoutMaps([5, 3, 4], 1);
    for (const cell of [{map: 0, row: 0, column: 0}, {map: 4, row: 2, column: 3}, {map: 2, row: 1, column: 0}]) {
      const {x, y} = placeOf(layout, cell);
      expect(cellAt(layout, x + 1, y + 1)).toEqual(cell);
    }
    expect(cellAt(layout, layout.width + 1, 1)).toBeNull();
    expect(cellAt(layout, -1, 1)).toBeNull();
  });

  test('show all channels at first, if they are few', () => {
    expect(firstLead([2, 6, 4, 5])).toEqual(['0', 'all']);
    expect(firstLead([2, 600, 4, 5])).toEqual(['0', '0']);
    expect(firstLead([2, 4, 5])).toEqual(['0']);
    expect(firstLead([4, 5])).toEqual([]);
  });

  test('know the place of an element', () => {
    expect(flatPlace([2, 3, 4], [1, 2, 3])).toBe(23);
  });
});

describe('groups', () => {
  const shape = [2, 3, 4];

  test.each([[[0, 1, 2]], [[1]], [[0, 2]], [[]]])('by %j lead to a region and back', (dims) => {
    const count = dims.reduce((product, dim) => product * shape[dim]!, 1);
    for (let group = 0; group < count; group++) expect(groupOf(shape, dims, groupElement(shape, dims, group))).toBe(group);
  });

  test('are regions, which have a text', () => {
    expect(elementText(groupElement(shape, [1], 2))).toBe('[·, 2, ·]');
    expect(isWithin([1, 2, 3], [null, 2, [2, 4]])).toBe(true);
    expect(isWithin([1, 2, 1], [null, 2, [2, 4]])).toBe(false);
  });
});

test('colours run from negative to positive, with zero in the middle', () => {
  const table = tableOf(['#000000', '#404040', '#808080', '#c0c0c0', '#ffffff']);
  expect([...table.slice(0, 4)]).toEqual([0, 0, 0, 255]);
  expect([...table.slice(-4)]).toEqual([255, 255, 255, 255]);
  expect(table[stepOf(0, 3) * 4]).toBe(128);
  expect(stepOf(-9, 3)).toBe(0);
  expect(stepOf(0, 0)).toBe(stepOf(0, 1));
  expect(stepOf(NaN, 1)).toBe(-1);
});

test('without negative values, colours run from zero on, and small values get most of them', () => {
  expect([0, 0.25, 1, 9, NaN].map((value) => stepOf(value, 1, false))).toEqual([0, 255, 510, 510, -1]);
});

describe('a long row', () => {
  const layout = layoutMaps([2, 2, 2000], 1);

  test('is folded into lines, so that it can be read', () => {
    expect(layout.line).toBe(64);
    expect(layout.width).toBe(64 * layout.cell);
    expect(layout.height).toBeLessThan(2 * 2 * 32 * layout.cell + 20);
  });

  test.each([
    [{map: 0, row: 0, column: 0}],
    [{map: 1, row: 1, column: 1999}],
    [{map: 0, row: 1, column: 64}],
  ])('has each cell where it is found again: %j', (cell) => {
    const {x, y} = placeOf(layout, cell);
    expect(cellAt(layout, x + 1, y + 1)).toEqual(cell);
    expect(nearestCell(layout, cell.map, x + 1, y + 1)).toEqual(cell);
  });

  test('has nothing behind its end', () => {
    const {x, y} = placeOf(layout, {map: 0, row: 0, column: 1999});
    expect(cellAt(layout, x + layout.cell + 1, y + 1)).toBeNull();
    expect(nearestCell(layout, 0, x + layout.cell + 1, y + 1)).toEqual({map: 0, row: 0, column: 1999});
  });
});

describe('a part of maps', () => {
  const layout = layoutMaps([2, 8, 8], 1, {rows: [2, 6], columns: [4, 6]});

  test('has larger cells, whose rows and columns are those of the whole', () => {
    expect(layout.cell).toBeGreaterThan(layoutMaps([2, 8, 8], 1).cell - 1);
    const cell = {map: 1, row: 5, column: 4};
    const {x, y} = placeOf(layout, cell);
    expect(cellAt(layout, x + 1, y + 1)).toEqual(cell);
    expect(placeOf(layout, {map: 0, row: 2, column: 4})).toEqual({x: 0, y: 0});
  });

  test.each([
    [-50, -50, {map: 0, row: 2, column: 4}],
    [5000, 5000, {map: 0, row: 5, column: 5}],
  ])('is not left by a drag to (%i, %i)', (x, y, expected) => {
    expect(nearestCell(layout, 0, x, y)).toEqual(expected);
  });
});
