import {describe, expect, it} from 'vitest';
import {indentOf, labelRoom, pressedPlaces, rowLabel} from '../../src/view/xray/rowLabel';

function label(name: string, letters: number, named: string[] = []): string {
  const module = {name, label: name.slice(name.lastIndexOf('.') + 1), depth: 0, row: 0, children: []};
  return rowLabel(module, new Set(named), letters);
}

describe('the label of a row of the x-ray', () => {
  it('is the name, with that of the module around it where no row has that', () => {
    expect(label('block1.conv', 20)).toBe('block1.conv');
    expect(label('block1.conv', 20, ['block1'])).toBe('conv');
    expect(label('conv', 20)).toBe('conv');
  });

  it('keeps what tells layers of different blocks apart', () => {
    const names = ['denseblock1.denselayer7', 'denseblock2.denselayer7', 'denseblock2.denselayer11'].map((name) => label(name, 17));
    expect(names).toEqual(['…ock1.denselayer7', '…ock2.denselayer7', '…ck2.denselayer11']);
  });

  it('is the name alone where nothing of what is around it has room', () => {
    expect(['denseblock3.denselayer7', 'denseblock3.denselayer10'].map((name) => label(name, 14))).toEqual(['…3.denselayer7', 'denselayer10']);
  });

  it('is cut in the middle where it is one name', () => {
    expect(label('self_attn_layer_norm', 11)).toBe('self_…_norm');
    expect(label('a.self_attn_layer_norm', 6)).toBe('sel…rm');
  });
});

describe('the indent of a row of the x-ray', () => {
  it('is the same from depth to depth', () => {
    expect([0, 1, 2].map((depth) => indentOf(depth, {deepest: 3, width: 100}))).toEqual([0, 7, 14]);
  });

  it('leaves deeply nested names most of the width', () => {
    expect(indentOf(20, {deepest: 20, width: 90})).toBeCloseTo(27);
    expect(indentOf(10, {deepest: 20, width: 90})).toBeCloseTo(13.5);
  });
});

describe('the height of rows that are pressed', () => {
  it.each([
    [[], []],
    [[20, 70, 120], [24, 24, 24]],
    [[20, 36, 90], [20, 20, 24]],
    [[20, 33, 46], [18.5, 13, 18.5]],
  ])('at %j is %j', (middles, heights) => {
    expect(pressedPlaces(middles).map(({above, below}) => above + below)).toEqual(heights);
  });

  it('never reaches over the middle between two', () => {
    const middles = [10, 24, 31, 80];
    const places = pressedPlaces(middles);
    places.slice(1).forEach(({above}, at) => expect(places[at]!.below + above).toBeLessThanOrEqual(middles[at + 1]! - middles[at]!));
  });

  it('is 24 pixels for fingers', () => expect([labelRoom(true), labelRoom(false)]).toEqual([24, 13]));
});
