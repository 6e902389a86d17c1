import {describe, expect, test} from 'vitest';
import {axesOf, defaultRoles, indexOf, nesting, numberOf, rolesFrom, rolesText} from '../../src/tensors/axes';
import {cellAt, cornerOf, gridOf, neighbour} from '../../src/tensors/grid';
import {lookOf} from '../../src/tensors/look';
import {cellOf, entryAt, indexInTensor, partAsked, rangesAround, viewOf} from '../../src/tensors/request';
import {summaryOf} from '../../src/tensors/shade';
import {entryText} from '../../src/tensors/words';
import {counting} from './parts';

describe('the dimensions of a tensor', () => {
  test.each([
    ['a scalar', [], null, false, ''],
    ['a vector of each sample', [4, 12], 0, false, 'sc'],
    ['a vector of all samples', [4, 12], 0, true, 'rc'],
    ['a number of each sample', [4], 0, true, 'c'],
    ['tokens', [4, 16, 12], 0, false, 'src'],
    ['a feature map', [4, 6, 8, 8], 0, false, 'sfrc'],
    ['feature maps of all samples', [4, 6, 8, 8], 0, true, 'ffrc'],
    ['an image with its channels last', [4, 32, 32, 3], 0, false, 'srcf'],
    ['a flow with its channels last', [4, 32, 32, 2], 0, false, 'srcf'],
    ['kernels', [64, 32, 3, 3], null, false, 'rcrc'],
    ['kernels of one channel', [6, 1, 3, 3], null, false, 'ffrc'],
    ['a film', [10, 3, 64, 64], null, false, 'sfrc'],
    ['more than there is room for', [2, 3, 4, 5, 6, 7], null, false, 'sssfrc'],
  ] as const)('are laid out by the shape: %s', (_, shape, batch, isAll, roles) => {
    expect(rolesText(defaultRoles(shape, batch, isAll))).toBe(roles);
  });

  test('are taken from the address only for as many dimensions', () => {
    expect(rolesFrom('src', 3)).toEqual(['slider', 'row', 'column']);
    expect([rolesFrom('src', 2), rolesFrom('sxc', 3), rolesFrom(null, 3)]).toEqual([null, null, null]);
  });

  test('can be nested, the last one running fastest', () => {
    const {rows, columns} = axesOf([2, 3, 2, 2], ['row', 'column', 'row', 'column'], []);
    expect([...rows.offsets]).toEqual([0, 2, 12, 14]);
    expect([...columns.offsets]).toEqual([0, 1, 4, 5, 8, 9]);
    expect([nesting(rows), nesting(columns)]).toEqual([2, 2]);
  });

  test('that are sliders have a position, which stays inside', () => {
    expect(axesOf([4, 3], ['slider', 'column'], [9, 0]).base).toBe(9);
  });

  test('make an index of a number, and back', () => {
    expect(indexOf(23, [2, 3, 4])).toEqual([1, 2, 3]);
    expect(numberOf([1, 2, 3], [2, 3, 4])).toBe(23);
    expect([numberOf([1, 3, 0], [2, 3, 4]), numberOf([1], [2, 3])]).toEqual([null, null]);
  });
});

describe('what is fetched', () => {
  const layout = {roles: ['slider', 'facet', 'row', 'column'] as const, positions: [3, 0, 0, 0], ranges: null, page: 0};

  test('is all of a small tensor, so that sliders need no request', () => {
    expect(partAsked({...layout, size: [4, 6, 8, 8]})).toEqual({at: ':,:,:,:', shrink: [2, 3]});
  });

  test('is one index along the sliders of a large one, and a page of facets', () => {
    expect(partAsked({...layout, size: [4, 100, 512, 512], page: 1}).at).toBe('3,64:100,:,:');
  });

  test('is a range where one looks closely', () => {
    expect(partAsked({...layout, size: [4, 6, 800, 800], ranges: ':,:,0:64,64:128'}).at).toBe('3,0:6,0:64,64:128');
  });
});

describe('what is drawn', () => {
  const part = counting([4, 6, 8, 9], {batch_dim: 0, samples: [0, 4, 8, 12]});
  const view = viewOf(part, {size: part.size, roles: ['slider', 'facet', 'row', 'column'], positions: [2, 0, 0, 0], page: 0})!;

  test('has the elements where the index says', () => {
    const entry = entryAt(view, {facet: 5, row: 1, column: 7});
    expect(indexInTensor(part, entry)).toEqual([2, 5, 1, 7]);
    expect(entryText(part, entry)).toBe(`[sample 8, 5, 1, 7] = ${entry}`);
    expect(cellOf(view, [2, 5, 1, 7])).toEqual({facet: 5, row: 1, column: 7});
  });

  test('does not show another sample', () => expect(cellOf(view, [1, 5, 1, 7])).toBeNull());

  test('tells of merged elements the mean and the range', () => {
    const [floats, none] = [(value: number) => new Float32Array(4).fill(value), new Float64Array(0)];
    const merged = {low: floats(-1), high: floats(2), bad: floats(3), topIndex: none, topValue: none};
    const whole = counting([2, 2], {factors: [4, 8], stop: [7, 16], merged});
    expect(entryText(whole, 3)).toBe('[4–6, 8–15] = mean 3, −1 to 2, 3 NaN or ∞');
    expect(rangesAround(whole, 3, [700, 1600])).toBe('0:68,0:72');
  });

  test.each([
    ['a number', [1], 'output', 'auto', 'number'],
    ['nothing', [0, 3], 'output', 'auto', 'empty'],
    ['bars', [7], 'output', 'auto', 'bars'],
    ['a heat map', [7, 3], 'output', 'auto', 'heat'],
    ['an image in grey', [1, 8, 8], 'input', 'auto', 'grey'],
    ['an image in colour', [3, 8, 8], 'input', 'auto', 'rgb'],
    ['channels, where they are no colours', [3, 8, 8], 'output', 'auto', 'heat'],
    ['four channels, of other numbers than from 0 to 1', [4, 8, 8], 'input', 'auto', 'heat'],
    ['those in colour, if asked for', [4, 8, 8], 'input', 'rgb', 'rgb'],
    ['no colours of five channels', [5, 8, 8], 'input', 'rgb', 'heat'],
  ] as const)('is %s', (_, size, role, chosen, look) => {
    const one = counting([...size]);
    const drawn = viewOf(one, {size, roles: defaultRoles(size, null), positions: [], page: 0})!;
    expect(lookOf(drawn, chosen, {role, kind: 'value'})).toBe(look);
  });

  test.each([
    ['opaque and clear colours', 'uint8', [4, 8, 8], 'rgb'],
    ['those with the channels last', 'uint8', [8, 8, 4], 'rgb'],
    ['two channels in grey', 'uint8', [2, 8, 8], 'grey'],
    ['those with the channels last', 'uint8', [8, 9, 2], 'grey'],
    ['one channel without a dimension', 'uint8', [8, 8], 'grey'],
    ['floats from 0 to 1 in four channels', 'float32', [4, 8, 8], 'rgb'],
    ['tokens, whatever they are', 'float32', [8, 8], 'heat'],
  ] as const)('is an image of %s', (_, dtype, size, look) => {
    const one = counting([...size], {dtype, summary: summaryOf([0, 1])});
    const drawn = viewOf(one, {size, roles: defaultRoles(size, null), positions: [], page: 0})!;
    expect(lookOf(drawn, 'auto', {role: 'input', kind: 'value'})).toBe(look);
  });
});

describe('pictures', () => {
  const counts = {rows: 8, columns: 8, facets: 6};

  test.each([
    ['a wide window', {width: 1000, height: 400}],
    ['a small one', {width: 300, height: 120}],
    ['one that is far too small', {width: 40, height: 30}],
  ])('are as large as fits in %s, and each cell is found again', (_, box) => {
    const grid = gridOf(counts, box);
    for (const cell of [{facet: 0, row: 0, column: 0}, {facet: 5, row: 7, column: 3}]) {
      const {x, y} = cornerOf(grid, cell);
      expect(cellAt(grid, counts, x + grid.cellWidth / 2, y + grid.cellHeight / 2)).toEqual(cell);
    }
    expect(cellAt(grid, counts, grid.width + 1, 1)).toBeNull();
  });

  test('of many columns stay within the width', () => {
    expect(gridOf({rows: 1, columns: 700, facets: 1}, {width: 710, height: 100}).width).toBeLessThanOrEqual(710);
  });

  test('are walked through by the arrow keys, from one to the next', () => {
    const from = {facet: 0, row: 2, column: 7};
    expect(neighbour(from, counts, 3, 'ArrowRight')).toEqual({facet: 1, row: 2, column: 0});
    expect(neighbour(from, counts, 3, 'ArrowLeft')).toEqual({facet: 0, row: 2, column: 6});
    expect(neighbour({facet: 0, row: 7, column: 1}, counts, 3, 'ArrowDown')).toEqual({facet: 3, row: 0, column: 1});
    expect(neighbour({facet: 5, row: 7, column: 7}, counts, 3, 'ArrowRight')).toEqual({facet: 5, row: 7, column: 7});
  });
});
