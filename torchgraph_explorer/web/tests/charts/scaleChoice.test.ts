import {describe, expect, test} from 'vitest';

import {historyFrom, normal, randomFrom} from '../../gallery/samples';
import {chooseScale} from '../../src/charts/scaleChoice';
import {bandScale, elementScale, measureScale} from '../../src/charts/valueAxis';
import {CHART_DEFAULTS} from '../../src/charts/options';
import type {ChartOptions} from '../../src/charts/options';

const random = randomFrom(3);

/** Normal elements of a size for each entry. */
function spread(entries: number, sizeAt: (share: number) => number, elements = 200) {
  return historyFrom(Array.from({length: entries}, (_, i) => normal(random, elements).map((value) => value * sizeAt(i / entries))));
}

const COURSES: Record<string, [(share: number) => number, 'linear' | 'symlog']> = {
  'stays as it is': [() => 0.05, 'linear'],
  'halves': [(share) => 1 - share / 2, 'linear'],
  'grows tenfold': [(share) => 1 + 9 * share, 'linear'],
  'fades by four powers of ten': [(share) => 10 ** (-4 * share), 'symlog'],
  'falls to a hundredth after a third': [(share) => (share < 0.33 ? 1 : 0.01), 'symlog'],
  'is large at two of a hundred steps': [(share) => (share < 0.02 ? 1000 : 1), 'linear'],
  'is nothing but zeros': [() => 0, 'linear'],
  'dies': [(share) => (share < 0.5 ? 1 : 0), 'linear'],
};

describe('a scale that is left to the data', () => {
  const options = (changes: Partial<ChartOptions> = {}): ChartOptions => ({...CHART_DEFAULTS, ...changes});

  test.each(Object.entries(COURSES))('of a series that %s', (_, [sizeAt, expected]) => {
    expect(elementScale(spread(100, sizeAt), options()).kind).toBe(expected);
  });

  test.each(Object.entries(COURSES))('of the line of a statistic that %s', (_, [sizeAt, expected]) => {
    expect(measureScale(spread(100, sizeAt), options({mode: 'line', statistic: 'std'})).kind).toBe(expected);
  });

  test('goes by the elements where bands are drawn', () => {
    expect(bandScale(spread(100, (share) => 10 ** (-4 * share)), [], options({mode: 'bands'})).kind).toBe('symlog');
  });

  test('is not asked where the user chose', () => {
    const fading = spread(100, (share) => 10 ** (-4 * share));
    expect(elementScale(fading, options({scale: 'linear'})).kind).toBe('linear');
    expect(elementScale(spread(100, () => 1), options({scale: 'symlog'})).kind).toBe('symlog');
  });

  test('of a mean that wanders around zero is linear', () => {
    expect(measureScale(spread(300, () => 1, 5), options({mode: 'line', statistic: 'mean'})).kind).toBe('linear');
  });

  test.each([0, 1, 3])('of %i entries is linear', (entries) => {
    expect(elementScale(spread(entries, (share) => 10 ** (-9 * share)), options()).kind).toBe('linear');
  });

  test('of a series that is all NaN is linear', () => {
    expect(elementScale(historyFrom(Array(9).fill([NaN])), options()).kind).toBe('linear');
  });
});

describe('while a run grows', () => {
  const kindsOf = (sizes: number[]): string[] =>
    sizes.map((_, i) => chooseScale({sizes: sizes.slice(0, i + 1), reachOf: (count) => Math.max(...sizes.slice(0, count))}));
  const changes = (kinds: string[]): number => kinds.filter((kind, i) => i > 0 && kind !== kinds[i - 1]).length;

  test('a series that fades changes its scale once', () => {
    const kinds = kindsOf(Array.from({length: 400}, (_, i) => 0.98 ** i));
    expect([kinds[0], kinds.at(-1), changes(kinds)]).toEqual(['linear', 'symlog', 1]);
  });

  test('a series at the edge of the two does not go back and forth', () => {
    const kinds = kindsOf(Array.from({length: 1000}, (_, i) => (i % 40 < 29 + 3 * Math.sin(i / 60) ? 1 : 0.04)));
    expect(changes(kinds)).toBeLessThanOrEqual(1);
  });

  test('the same history always has the same scale', () => {
    const sizes = Array.from({length: 77}, (_, i) => 0.9 ** i);
    expect(new Set([0, 1, 2].map(() => kindsOf(sizes).join())).size).toBe(1);
  });
});
