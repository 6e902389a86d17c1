import {describe, expect, test} from 'vitest';
import {BAD, isBad, numberOf} from '../../src/xray/codes';
import {codeOf} from './codes';
import {badRuns, columnAt, columnsOfPixels, edgesOf, folded, paint, shifted, squeezed, wholeOf, zoomed} from '../../src/xray/matrix';
import {colourTable, xrayScale} from '../../src/xray/scale';
import {labelPlaces, rowOf, treeOf, visibleRows} from '../../src/xray/tree';

const VALUES = [0, 1e-38, 3e-5, 0.5, 1, 123, 3e38];
const MODULES = ['', 'stem', 'layers.0', 'layers.0.fc', 'layers.1', 'layers.1.fc', 'head'];

describe('a code', () => {
  test.each(VALUES)('has the number %s within half a percent', (value) => {
    expect(Math.abs(numberOf(codeOf(value)) - value)).toBeLessThanOrEqual(0.004 * value);
  });

  test('is larger for a larger number, and largest for what is not finite', () => {
    const codes = [0, ...VALUES.map(codeOf), BAD];
    expect(codes).toEqual([...codes].sort((one, other) => one - other));
    expect([numberOf(0), numberOf(BAD)]).toEqual([NaN, NaN]);
    expect(isBad(BAD | codeOf(3))).toBe(true);
    expect(numberOf(BAD | codeOf(0.5))).toBe(0.5);
  });
});

describe('the rows', () => {
  const tree = treeOf(MODULES, 'Net');
  const names = (open: readonly string[]): string[] => visibleRows(tree, new Set(open)).map(({module}) => module.name);

  test('are the modules in their tree, with those that only hold others', () => {
    expect(names([])).toEqual(['', 'stem', 'layers', 'layers.0', 'layers.0.fc', 'layers.1', 'layers.1.fc', 'head']);
  });

  test('stand for all that is inside where they are folded', () => {
    expect(names(['layers'])).toEqual(['', 'stem', 'layers', 'head']);
    expect(visibleRows(tree, new Set(['layers']))[2]?.rows).toEqual([2, 3, 4, 5]);
    expect(visibleRows(tree, new Set(['']))[0]?.rows).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test('leave out a module that holds a single other one', () => {
    const only = visibleRows(treeOf(['a.b.c', 'd'], 'Net'), new Set());
    expect(only.map(({module}) => module.label)).toEqual(['a.b.c', 'd']);
  });

  test('are found by name, folded or not', () => {
    const rows = visibleRows(tree, new Set(['layers']));
    expect([rowOf(rows, 'head'), rowOf(rows, 'layers.1.fc'), rowOf(rows, 'gone')]).toEqual([3, 2, -1]);
  });

  test('have labels that do not overlap, the outermost first', () => {
    const rows = visibleRows(tree, new Set());
    expect(labelPlaces(rows, 20, 13)).toHaveLength(rows.length);
    const few = labelPlaces(rows, 4, 13);
    expect(few[0]).toEqual({row: 0, top: 0});
    few.slice(1).forEach(({top}, i) => expect(top - few[i]!.top).toBeGreaterThanOrEqual(13));
  });

  test('have labels of the larger of two modules that are equally deep', () => {
    const rows = visibleRows(treeOf(['', 'stem', 'down', 'norm', 'block', 'block.a', 'block.b', 'block.c', 'block.d'], 'Net'), new Set());
    expect(labelPlaces(rows, 4.5, 13).map(({row}) => rows[row]!.module.name)).toEqual(['', 'block']);
  });

  test('have the label of a module beside what is inside it, where that of the module around it is in its place', () => {
    const leaves = (block: number): string[] => Array.from({length: 20}, (_, i) => `${block}.${i}`);
    const rows = visibleRows(treeOf(['', '0', ...leaves(0), '1', ...leaves(1)], 'Net'), new Set());
    const labels = labelPlaces(rows, 1.5, 13).map(({row, top}) => [rows[row]!.module.name, top]);
    expect(labels).toEqual([['', 0], ['0', 13], ['1', 33], ['1.8', 46.5]]);
  });
});

const one = codeOf(1);
const two = codeOf(2);

describe('the picture', () => {
  test('has the largest code of folded rows', () => {
    const rows = visibleRows(treeOf(['a.x', 'a.y'], 'Net'), new Set(['a']));
    const codes = Uint16Array.of(one, two, 0, two, one, BAD);
    expect([...folded({codes, first: Float64Array.of(0, 1, 2)}, rows)]).toEqual([two, two, BAD]);
  });

  test('keeps the largest code of rows that share a pixel', () => {
    expect(squeezed(Uint16Array.of(1, 2, BAD, 0, 5), 1, 2)).toEqual({matrix: Uint16Array.of(BAD, 5), rows: 2});
    expect(squeezed(Uint16Array.of(1, 2), 1, 2).rows).toBe(2);
  });

  test.each([1, 3, 10, 97, 400])('shows every column in at least one of %i pixels', (width) => {
    const edges = Float64Array.from({length: 98}, (_, i) => i * i);
    const {starts, stops} = columnsOfPixels(edges, wholeOf(edges), width);
    const seen = new Set([...starts].flatMap((start, pixel) => Array.from({length: stops[pixel]! - start}, (_, i) => start + i)));
    expect(seen.size).toBe(97);
    expect(Math.min(...[...stops].map((stop, pixel) => stop - starts[pixel]!))).toBeGreaterThan(0);
  });

  test('paints what is not finite, however many columns share the pixel', () => {
    const matrix = new Uint16Array(1000).fill(one);
    matrix[637] = BAD;
    const edges = Float64Array.from({length: 1001}, (_, i) => i);
    const pixels = new Uint32Array(10);
    paint(matrix, 1000, columnsOfPixels(edges, wholeOf(edges), 10), colourTable(xrayScale(matrix, false), [[0, 0, 0], [9, 9, 9]], {bad: [255, 0, 0], zero: [9, 9, 9]}), pixels);
    expect([...pixels].map((colour) => (colour & 0xff) === 255)).toEqual([...Array(10).keys()].map((pixel) => pixel === 6));
  });

  test.each([
    {first: [0], last: [0], edges: [0, 1]},
    {first: [0, 10, 20], last: [0, 10, 20], edges: [0, 10, 20, 30]},
    {first: [0, 16], last: [15, 20], edges: [0, 16, 32]},
    {first: [], last: [], edges: [0]},
  ])('has its columns side by side: $first', ({first, last, edges}) => {
    expect([...edgesOf({first: Float64Array.from(first), last: Float64Array.from(last)})]).toEqual(edges);
  });

  test.each([
    [0, 0],
    [9.9, 0],
    [10, 1],
    [29.9, 2],
    [30, -1],
    [-1, -1],
  ])('has step %f in column %i', (step, column) => expect(columnAt(Float64Array.of(0, 10, 20, 30), step)).toBe(column));
});

describe('the time in sight', () => {
  const whole = {from: 0, to: 100};

  test('is magnified around a step, which stays where it is', () => {
    expect(zoomed(whole, 2, 30, whole)).toEqual({from: 15, to: 65});
    expect(zoomed({from: 15, to: 65}, 0.5, 30, whole)).toEqual(whole);
  });

  test('never leaves the run, and never has less than two steps', () => {
    expect(shifted({from: 80, to: 90}, 50, whole)).toEqual({from: 90, to: 100});
    expect(zoomed({from: 50, to: 52}, 100, 51, whole)).toEqual({from: 50, to: 52});
    expect(zoomed({from: 0, to: 1}, 2, 0, {from: 0, to: 1})).toEqual({from: 0, to: 1});
  });
});

describe('the scale', () => {
  test.each([
    {name: 'nothing', codes: [0, BAD], isShare: false, expected: null},
    {name: 'only zeros', codes: [codeOf(0)], isShare: false, expected: [0, 1, false]},
    {name: 'one number', codes: [one], isShare: false, expected: [0.5, 2, true]},
    {name: 'a share', codes: [codeOf(0.25)], isShare: true, expected: [0, 1, false]},
    {name: 'numbers', codes: [codeOf(0.5), one, codeOf(4)], isShare: false, expected: [0.5, 4, true]},
    {name: 'what vanishes', codes: [codeOf(1e-30), one], isShare: false, expected: [1e-10, 1, true]},
  ])('of $name', ({codes, isShare, expected}) => {
    const scale = xrayScale(Uint16Array.from(codes), isShare);
    expect(scale && [scale.low, scale.high, scale.isLog]).toEqual(expected);
  });
});

describe('the places of cells that are not finite', () => {
  const [bad, fine] = [BAD | 7, 7];
  const codes = Uint16Array.of(bad, bad, fine, bad, bad, fine, 0, bad);

  test('are the runs of each row, which do not go on in the next one', () =>
    expect(badRuns(codes, 4, 9)).toEqual([
      {row: 0, first: 0, last: 1},
      {row: 0, first: 3, last: 3},
      {row: 1, first: 0, last: 0},
      {row: 1, first: 3, last: 3},
    ]));

  test('are at most so many, the last of which is whole', () => expect(badRuns(codes, 8, 1)).toEqual([{row: 0, first: 0, last: 1}]));
});
