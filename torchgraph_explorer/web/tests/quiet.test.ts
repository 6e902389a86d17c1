import {expect, test} from 'vitest';

import {durationText, patience} from '../src/view/state/quiet';

test.each([
  {name: 'two minutes at least', times: [0, 1, 2], seconds: 120},
  {name: 'five times as long as the longest of the last waits', times: [0, 100, 110, 120], seconds: 500},
  {name: 'waits long ago do not count', times: [0, 5000, ...Array.from({length: 30}, (_, i) => 5001 + i)], seconds: 120},
  {name: 'after the first step no wait is known', times: [7], seconds: 1800},
  {name: 'times that go back are no wait', times: [100, 0], seconds: 120},
])('a pause is usual for $name', ({times, seconds}) => {
  expect(patience(times)).toBe(seconds);
});

test.each([
  [89, '89 s'],
  [150, '3 min'],
  [3 * 3600, '3 h'],
  [3 * 86_400, '3 days'],
])('%d seconds are %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});
