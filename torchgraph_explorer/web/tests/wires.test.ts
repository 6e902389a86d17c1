import {describe, expect, test} from 'vitest';

import type {PlacedEdge} from '../src/api/types';
import {wiresOf} from '../src/graph/wires';

type Points = [number, number][];

/** From a node at the top, down a lane at x = 100 to a row at `y`, and to a node there. */
function beside(edge: number, y: number, x = 0): PlacedEdge {
  const points: Points = [[0, 0], [0, 5], [100, 5], [100, 10], [100, 10], [100, y - 10], [100, y - 10], [100, y - 5], [x, y - 5], [x, y]];
  return {edge, points, is_stub: false};
}

describe('the wires of a large drawing', () => {
  test('share what runs on top of each other, and have each their tip', () => {
    const {shared, tips} = wiresOf([beside(0, 100), beside(1, 300), beside(2, 200)], null);
    expect(shared).toBe('M0,0C0,5 100,5 100,10M100,10V290');
    expect(tips).toEqual([
      'M100,90C100,95 0,95 0,100',
      'M100,290C100,295 0,295 0,300',
      'M100,190C100,195 0,195 0,200',
    ]);
  });

  test('keep gaps between runs at one place', () => {
    const late: Points = [[100, 400], [100, 410], [100, 420], [100, 430], [100, 440], [0, 440], [0, 450]];
    expect(wiresOf([beside(0, 100), {edge: 1, points: late, is_stub: false}], null).shared).toContain('M100,10V90M100,400V430');
  });

  test('leave out what is far away', () => {
    const {shared, tips} = wiresOf([beside(0, 100), beside(1, 5000)], {left: -50, right: 150, top: 0, bottom: 150});
    expect([shared, tips.length]).toEqual(['M0,0C0,5 100,5 100,10M100,10V4990', 1]);
  });

  test('that are short are tips alone', () => {
    expect(wiresOf([{edge: 0, points: [[0, 0], [0, 5], [9, 5], [9, 9]], is_stub: false}], null)).toEqual({shared: '', tips: ['M0,0C0,5 9,5 9,9']});
  });
});
