import {expect, test} from 'vitest';
import {rangeText} from '../../src/charts/overCalls';

test.each([
  [{elements: 8, low: -0.4, high: 0.5, counts: [3, 5]}, 'from −0.4 to 0.5'],
  [{elements: 100, low: -0.4, high: 0.5, counts: [30.5, 59.5]}, 'drawn from −0.4 to 0.5; 10 % lie beyond'],
])('the histogram of all calls says what of the elements it shows: %j', (histogram, text) => {
  expect(rangeText(histogram)).toBe(text);
});
