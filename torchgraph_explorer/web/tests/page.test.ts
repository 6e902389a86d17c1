import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import type {ModelName} from '../src/api/answers';
import {openPage} from '../src/api/page';
import type {Page} from '../src/api/page';
import {STATISTICS} from '../src/api/types';

/** The file that Python's tests write: see tests/contracts/page.py. */
const FILE = new URL('../../../tests/contracts/page.bin', import.meta.url);
const ROWS = JSON.parse(readFileSync(new URL('./page.json', FILE), 'utf8')) as (Row | null)[];
const MODEL: ModelName = {run: 'page', model: 'net'};
const NOTHING = {epoch: -1, frames: 0, series: 0};

interface Row {
  series: number;
  step: number;
  /** The bits of float32. */
  statistics: number[];
  buckets: number[];
  counts: number[];
}

const page = openPage(new Uint8Array(readFileSync(FILE)).buffer) as Page;
const {answers} = page;

/** Everything that the page's histories say, as page.json has it. */
async function rowsOf(series: number, model: ModelName = MODEL): Promise<Row[]> {
  const {frames} = await answers.updates(model, NOTHING);
  const history = (await answers.history(model, {series: [series], from: 0})).series.get(series)!;
  const bits = new Uint32Array(history.statistics.buffer);
  return [...history.frame].map((frame, i) => {
    const [start, stop] = [history.offsets[i]!, history.offsets[i + 1]!];
    return {
      series,
      step: frames.step[frame]!,
      statistics: [...bits.subarray(i * STATISTICS.length, (i + 1) * STATISTICS.length)],
      buckets: [...history.buckets.subarray(start, stop)],
      counts: [...history.counts.subarray(start, stop)],
    };
  });
}

describe('an exported page', () => {
  test.each([0, 1, 2, 3])('has the numbers of series %i as the record has them', async (series) => {
    expect(await rowsOf(series)).toEqual(ROWS.filter((row) => row?.series === series));
  });

  test('takes the statistics of a frame from the histories', async () => {
    const wanted = ROWS.filter((row) => row?.step === 7) as Row[];
    const {series, statistics, step} = await answers.frame(MODEL, 7);
    expect({step, series: [...series]}).toEqual({step: 7, series: wanted.map((row) => row.series)});
    expect([...new Uint32Array(statistics.buffer)]).toEqual(wanted.flatMap((row) => row.statistics));
  });

  test('has nothing new for who holds everything', async () => {
    const all = await answers.updates(MODEL, NOTHING);
    const again = await answers.updates(MODEL, {epoch: 0, frames: all.frames.step.length, series: 4});
    expect(again).toMatchObject({reset: false, frames: {first: 12, step: []}, series: {first: 4, items: []}});
  });

  test('knows how much was recorded, and its one run', async () => {
    expect(page.recorded(MODEL)).toEqual({frames: 12, series: 4});
    expect((await answers.runs()).runs.map(({run}) => run)).toEqual(['page']);
  });

  test('has the logged scalars and notes', async () => {
    const {scalars, notes, values} = (await answers.scalars(MODEL, {scalars: [0, 1], most: 1024}))!;
    expect(scalars.map(({name}) => name)).toEqual(['loss', 'tokens']);
    expect(notes).toEqual([{step: 4, time: 2004, text: 'switched'}]);
    expect([...values.get(0)!.value]).toEqual([2.5, NaN, -0.125]);
    expect([...values.get(1)!.step]).toEqual([0, 4, 9]);
    expect(await answers.scalars(MODEL, {scalars: [0], most: 1024, known: {version: 'page', unit: 1, from: 9}})).toBeNull();
  });

  test.each([
    ['Adam', [0, 2, 4, 6, 8, 10]],
    ['Adam #2', [1, 3, 5, 7, 9]],
    ['SGD', []],
  ])('has the steps of %s alone, numbered from 0', async (optimizer, steps) => {
    const of = {...MODEL, optimizer};
    const {frames, optimizers} = await answers.updates(of, NOTHING);
    expect([frames.step, optimizers]).toEqual([steps, ['Adam', 'Adam #2']]);
    const all = await answers.updates(MODEL, NOTHING);
    expect(frames.passes).toEqual(steps.map((step) => all.frames.passes[step]));
    const wanted = ROWS.filter((row) => row?.series === 1 && steps.includes(row.step));
    expect(await rowsOf(1, of)).toEqual(wanted);
    const {bad, first, frames: looked} = await answers.nonfinite(of, NOTHING);
    const whole = await answers.nonfinite(MODEL, NOTHING);
    const isBad = (step: number): boolean => whole.bad.some(([from, to]) => from <= step && step <= to);
    expect([bad.map(([step]) => step), looked]).toEqual([steps.filter(isBad), steps.length]);
    expect(first?.step).toBe(steps.find(isBad));
  });

  test('has the statistics of a step also where others are left out', async () => {
    const [all, own] = await Promise.all([MODEL, {...MODEL, optimizer: 'Adam #2'}].map((name) => answers.frame(name, 7)));
    expect(own).toEqual(all);
    await expect(answers.frame({...MODEL, optimizer: 'Adam'}, 7)).rejects.toThrow('This page has no step 7.');
  });

  test('has the explanations of its findings, and null for other kinds', async () => {
    const found = await answers.explanation('dead-units');
    expect(found?.parts[0]!.blocks).toEqual([{text: [{text: 'See '}, {text: 'units', link: '#units'}]}]);
    expect(await answers.explanation('mine')).toBeNull();
  });

  test('says what it does not have', async () => {
    await expect(answers.graph(MODEL, 7)).rejects.toThrow('This page has no graph 7.');
    await expect(answers.graph({run: 'page', model: 'other'}, 0)).rejects.toThrow('This page has no model other.');
  });

  test('is none where there is no data in it', () => {
    expect(openPage(undefined)).toBeNull();
  });
});
