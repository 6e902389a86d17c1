import {describe, expect, test} from 'vitest';

import {forJson, tableFrom, textOf} from '../src/flow/clipboard';
import {axisFor, corresponding, correspondingSpan, liningFor} from '../src/flow/lining';
import {offers, tokenFrom} from '../src/flow/tokens';
import type {Found} from '../src/flow/tokens';
import {countOf, elementFrom, regionOf, spanOf, spanOfElement} from '../src/flow/region';

describe('a region', () => {
  const shape = [2, 3, 8, 8];

  test.each([
    ['one cell is an element', {map: 1, row: 2, column: 3}, {map: 1, row: 2, column: 3}, [0, 1, 2, 3]],
    ['a rectangle, dragged backwards', {map: 1, row: 5, column: 3}, {map: 1, row: 2, column: 1}, [0, 1, [2, 6], [1, 4]]],
    ['a row', {map: 0, row: 5, column: 3}, {map: 2, row: 5, column: 1}, [0, 0, 5, [1, 4]]],
  ])('is a part of one map: %s', (_, one, other, expected) => {
    expect(regionOf(shape, ['0', 'all'], one.map, spanOf(one, other))).toEqual(expected);
  });

  test.each([
    ['a vector', [5], [[1, 3]], {rows: [0, 1], columns: [1, 3]}],
    ['a matrix', [4, 5], [2, null], {rows: [2, 3], columns: [0, 5]}],
    ['a scalar', [], [], {rows: [0, 1], columns: [0, 1]}],
  ] as const)('covers cells of %s', (_, of, element, expected) => {
    expect(spanOfElement(of, element.map((part) => (Array.isArray(part) ? [...part] : part)) as never)).toEqual(expected);
  });

  test('of a vector has one index', () => {
    expect(regionOf([5], [], 0, {rows: [0, 1], columns: [1, 3]})).toEqual([[1, 3]]);
  });

  test('counts its elements', () => {
    expect(countOf(shape, [0, null, [2, 5], 1])).toBe(9);
  });

  test.each([
    ['0, 1, 2:5, :', [0, 1, [2, 5], null]],
    ['[-1, 2, :3, 6:]', [1, 2, [0, 3], [6, 8]]],
    ['0,0,·,7', [0, 0, null, 7]],
  ])('is read from %s', (text, expected) => {
    expect(elementFrom(text, shape)).toEqual(expected);
  });

  test.each([
    ['', '4 indices are needed, one for each of [2, 3, 8, 8]; given are 0.'],
    ['1, 2', '4 indices are needed, one for each of [2, 3, 8, 8]; given are 2.'],
    ['0, 3, 0, 0', "'3' is no index into a dimension of size 3. Write a number, a range such as 0:3, or : for all."],
    ['0, 0, 5:5, 0', "'5:5' is no index into a dimension of size 8. Write a number, a range such as 0:8, or : for all."],
    ['0, 0, x, 0', "'x' is no index into a dimension of size 8. Write a number, a range such as 0:8, or : for all."],
    ['0, 0, , 0', 'Nothing is no index into a dimension of size 8. Write a number, a range such as 0:8, or : for all.'],
  ])('%j is refused with what is allowed', (text, expected) => {
    expect(elementFrom(text, shape)).toBe(expected);
  });
});

describe('tensors that are lined up', () => {
  test.each([
    ['the same size', 8, 8, {stride: 1, offset: 0}],
    ['a convolution without padding', 6, 8, {stride: 1, offset: 1}],
    ['a stride of 2', 4, 8, {stride: 2, offset: 0.5}],
    ['upsampled', 16, 8, {stride: 0.5, offset: -0.25}],
    ['one element', 1, 8, {stride: 8, offset: 3.5}],
  ])('have their centres at one place: %s', (_, size, reference, expected) => {
    expect(axisFor(size, reference)).toEqual(expected);
  });

  test.each([
    ['the same', [2, 4], {stride: 1, offset: 0}, {stride: 1, offset: 0}, 8, [2, 4]],
    ['without padding, one further left', [2, 4], {stride: 1, offset: 0}, {stride: 1, offset: 1}, 6, [1, 3]],
    ['coarser', [2, 4], {stride: 1, offset: 0}, {stride: 2, offset: 0.5}, 4, [1, 2]],
    ['coarser, cut through', [1, 4], {stride: 1, offset: 0}, {stride: 2, offset: 0.5}, 4, [0, 2]],
    ['finer', [1, 2], {stride: 2, offset: 0.5}, {stride: 1, offset: 0}, 8, [2, 4]],
    ['beyond the edge: the nearest', [0, 1], {stride: 1, offset: 0}, {stride: 1, offset: 2}, 4, [0, 1]],
    ['beyond the other edge', [7, 8], {stride: 1, offset: 0}, {stride: 1, offset: 1}, 6, [5, 6]],
  ] as const)('show corresponding elements: %s', (_, range, from, to, size, expected) => {
    expect(corresponding(range, from, to, size)).toEqual(expected);
  });

  test('have parts in both dimensions', () => {
    const [input, convolved] = [[1, 1, 8, 10], [1, 4, 6, 5]];
    expect(correspondingSpan({rows: [2, 4], columns: [4, 6]}, liningFor(input, input), liningFor(convolved, input), convolved)).toEqual({rows: [1, 3], columns: [2, 3]});
  });
});

describe('numbers in the clipboard', () => {
  test.each([
    ['a spreadsheet', '1\t2\n3\t4', [[1, 2], [3, 4]]],
    ['CSV', '1.5,-2e-3\r\n.5,+4\r\n', [[1.5, -0.002], [0.5, 4]]],
    ['numpy', '[[ 1.  0.5]\n [-2. nan]]', [[1, 0.5], [-2, NaN]]],
    ['numpy, with its name', 'array([[1., 2.],\n       [3., inf]])', [[1, 2], [3, Infinity]]],
    ['JSON', '[[1, 2], [3, -4]]', [[1, 2], [3, -4]]],
    ['torch', 'tensor([1., 2.])', [[1, 2]]],
    ['one number', '7', [[7]]],
  ])('are read from %s', (_, text, expected) => {
    expect(tableFrom(text)).toEqual(expected);
  });

  test.each(['', 'the cat', '1 2 three', '1,2;x', 'nano'])('are not read from %j', (text) => {
    expect(tableFrom(text)).toBeNull();
  });

  test('are written as they are read', () => {
    const table = [[1, -0.25], [NaN, -Infinity]];
    expect(tableFrom(textOf(table))).toEqual(table);
    expect([1, NaN, Infinity, -Infinity].map(forJson)).toEqual([1, 'nan', 'inf', '-inf']);
  });
});

describe('tokens by their words', () => {
  const found: Found[] = [
    [4, 'cat'],
    [9, ' cat'],
    [7, 'cats'],
  ];

  test('are offered with their number where words are equal', () => {
    expect(offers(found)).toEqual([
      {number: 4, value: 'cat #4'},
      {number: 9, value: 'cat #9'},
      {number: 7, value: 'cats'},
    ]);
  });

  test.each([
    ['cat', 4],
    ['Cat ', 4],
    ['cat #9', 9],
    ['ca', "No token has the word 'ca'. Similar: 'cat #4', 'cat #9', 'cats'."],
  ])('%s is found', (text, expected) => {
    expect(tokenFrom(text, found)).toBe(expected);
  });

  test('that are not there are said', () => {
    expect(tokenFrom('dog', [])).toBe("No token has the word 'dog'. None contains it.");
  });
});
