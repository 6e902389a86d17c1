import {expect, test} from 'vitest';

import {axisTicks} from '../../src/view/xray/axisTicks';

const widthOf = (text: string): number => 6 * text.length;

test.each([
  ['short steps', {from: 0, to: 100, last: 99, width: 280}, ['0', '20', '40', '60', '80']],
  ['steps of ten million', {from: 9_999_960, to: 10_000_040, last: 10_000_039, width: 272}, ['10M']],
  ['steps of ten million with room', {from: 9_999_960, to: 10_000_040, last: 10_000_039, width: 560}, ['9,999,960', '9,999,980', '10,000,000', '10,000,020']],
  ['one step', {from: 0, to: 1, last: 0, width: 280}, ['0']],
])('the axis of %s has the labels that have room', (_, axis, expected) => {
  expect(axisTicks(axis, widthOf).map(({text}) => text)).toEqual(expected);
});
