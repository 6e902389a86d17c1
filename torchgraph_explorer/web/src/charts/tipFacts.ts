/** What the pointer on a strip tells: the step, the bin, and the statistics there. */

import {formatCount, formatNumber, wholeNumber} from '../numberText';
import {measureNamed, type Row} from '../statistics';
import {QUANTILES, quantiles} from '../histogram/histogram';
import {aboutCount, axisNumber} from './format';
import {boundsOf, entryOf, hasHistogram, histogramOf, isLost, isMerged, lostText, rowOfEntry} from '../history';
import type {Box} from './layout';
import {countIn, rebin} from '../histogram/rebin';
import type {RowGrid} from './grid';
import {scaleNumber} from './scale';
import type {Scene} from './scene';

/** Name and value, line by line. */
export type Fact = readonly [name: string, value: string];

/** The row of the bars' grid at a height in the strip: -1 below the axis, the number of rows above. */
export function rowAtHeight(y: number, {y: top, height}: Box, rows: number): number {
  if (y < top) return rows;
  if (y >= top + height) return -1;
  return rows - 1 - Math.floor(((y - top) / height) * rows);
}

/** The facts of the entry with a frame, and of the row under the pointer where the plot has rows. */
export function tipFacts(scene: Scene, frame: number, row: number | null, steps: ArrayLike<number> = []): Fact[] {
  const {history} = scene;
  const entry = entryOf(history, frame);
  if (entry < 0) return [['', 'nothing recorded at this step']];
  const statistics = rowOfEntry(history, entry);
  const about = row === null ? CONTENT[scene.content.mode](scene, entry) : binFacts(scene, entry, row);
  const trouble = troubleOf(statistics);
  if (statistics.count === 0) return [['', 'no elements']];
  if (isLost(history, entry)) return [['', lostText(statistics)], ...(trouble.length > 1 ? trouble : [])];
  const first: Fact[] = trouble.length > 0 && isMerged(history, entry) ? [['first at step', wholeNumber(steps[history.bad[entry]!] ?? 0)]] : [];
  return [...about, ['mean', formatNumber(statistics.mean)], ['std', formatNumber(statistics.std)], ...trouble, ...first];
}

const CONTENT: Record<Scene['content']['mode'], (scene: Scene, entry: number) => Fact[]> = {
  heat: () => [],
  bands({history}, entry) {
    if (!hasHistogram(history, entry)) return ofStatistics(rowOfEntry(history, entry));
    const values = quantiles(histogramOf(history, entry), QUANTILES, boundsOf(history, entry));
    const text = values.map((value) => formatNumber(value));
    return [
      ['1–99 %', `${text[0]} … ${text[6]}`],
      ['5–95 %', `${text[1]} … ${text[5]}`],
      ['25–75 %', `${text[2]} … ${text[4]}`],
      ['median', text[3]!],
    ];
  },
  line({history, options}, entry) {
    const measure = measureNamed(options.statistic);
    return [[measure.label, formatNumber(measure.of(rowOfEntry(history, entry)))]];
  },
};

/** Of an entry without a histogram; its mean and standard deviation are told in any case. */
function ofStatistics({min, max}: Row): Fact[] {
  return [
    ['no histogram', 'bands: mean ± std, ± 2 std'],
    ['min … max', `${formatNumber(min)} … ${formatNumber(max)}`],
  ];
}

function binFacts({history, grid}: Scene, entry: number, row: number): Fact[] {
  const rows = rebin(histogramOf(history, entry), boundsOf(history, entry), grid);
  if (row < 0) return [[`below ${scaleNumber(grid.scale.low, grid.scale)}`, elements(rows.below)]];
  if (row >= grid.rows) return [[`above ${scaleNumber(grid.scale.high, grid.scale)}`, elements(rows.above)]];
  return [['bin', binText(grid, row)], ['in it', elements(countIn(rows, row, grid))]];
}

function elements(count: number): string {
  return aboutCount(Math.abs(count - Math.round(count)) < 1e-6 ? Math.round(count) : count);
}

/** A bin's ends, with enough digits to tell them apart. */
function binText({edges}: RowGrid, row: number): string {
  const [low, high] = [edges[row]!, edges[row + 1]!];
  return `${axisNumber(low, high - low)} … ${axisNumber(high, high - low)}`;
}

/** The non-finite elements of a row, by kind. */
export function troubleOf(row: Row): Fact[] {
  const kinds = [
    ['NaN', row.nan],
    ['+∞', row.positive_infinity],
    ['−∞', row.negative_infinity],
  ] as const;
  return kinds.filter(([, count]) => count > 0).map(([name, count]) => [name, formatCount(count)]);
}
