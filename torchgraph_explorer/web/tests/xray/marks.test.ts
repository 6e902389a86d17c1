import {describe, expect, test} from 'vitest';
import {HALF_PX, marksOf} from '../../src/xray/marks';

/** As many findings, each to the right of and below the one before. */
const stairs = (count: number, dx: number, dy: number) => Array.from({length: count}, (_, at) => ({x: at * dx, y: at * dy, subject: at}));

describe('the marks of findings in the x-ray', () => {
  test.each([
    ['on top of each other', 0, 0],
    ['side by side', 7, 0],
    ['one below the other', 0, 12],
    ['on a diagonal', 10, 10],
    ['on a steep one', 4, 11],
  ])('do not cover each other: %s', (_, dx, dy) => {
    const marks = marksOf(stairs(40, dx, dy));
    const apart = marks.flatMap((one, at) => marks.slice(0, at).map((other) => Math.abs(one.x - other.x) + Math.abs(one.y - other.y)));
    expect(Math.min(Infinity, ...apart)).toBeGreaterThanOrEqual(2 * HALF_PX);
  });

  test('stand for all findings', () => {
    expect(marksOf(stairs(40, 6, 5)).flatMap(({subjects}) => subjects).sort((a, b) => a - b)).toEqual([...Array(40).keys()]);
  });

  test('stay apart where they only touch', () => expect(marksOf(stairs(3, HALF_PX, HALF_PX))).toHaveLength(3));
});
