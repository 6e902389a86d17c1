import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import {openPage} from '../src/api/page';
import type {Page} from '../src/api/page';
import {selected, spansOf, summaryOf} from '../src/api/selection';
import type {WantedLine, WantedPart} from '../src/api/tensors';

/** The files that Python's tests write: see tests/contracts/kept_page.py. */
const FILE = new URL('../../../tests/contracts/kept_page.bin', import.meta.url);
const {answers: asked, graph, merged} = JSON.parse(readFileSync(new URL('./kept_page.json', FILE), 'utf8'));
const MODEL = {run: 'page', model: 'net'};
const {answers} = openPage(new Uint8Array(readFileSync(FILE)).buffer) as Page;

interface Case {
  name: string;
  asked: Record<string, unknown>;
  answer: {dtype: string; arrays: Record<string, (number | string)[]>; summary: Record<string, number | null>; skipped: number; categories?: string[]};
}

const cases = (asked as Case[]).map((one) => ({...one, name: JSON.stringify(one.asked)}));
const parts = cases.filter((one) => one.asked.route === 'tensor');
const lines = cases.filter((one) => one.asked.route === 'line');

/** What is no number for JSON is a text. */
function plain(values: ArrayLike<number>): (number | string)[] {
  const names = new Map([[Infinity, 'inf'], [-Infinity, '-inf']]);
  return Array.from(values, (one) => (Number.isFinite(one) ? one : (names.get(one) ?? 'nan')));
}

function expectNear(found: readonly (number | string | null)[], wanted: readonly (number | string | null)[]): void {
  expect(found.length).toBe(wanted.length);
  found.forEach((one, i) => {
    const other = wanted[i] as number | string | null;
    if (typeof one === 'number' && typeof other === 'number') expect(Math.abs(one - other)).toBeLessThanOrEqual(1e-6 * Math.max(1, Math.abs(other)));
    else expect(one).toBe(other);
  });
}

describe('the kept tensors of an exported page', () => {
  test.each(parts)('are what a server answers to $name', async ({asked: wanted, answer}) => {
    const {arrays, summary, ...meta} = answer;
    const found = await answers.tensor(MODEL, {...wanted, shrink: []} as unknown as WantedPart);
    expect(found).toMatchObject(meta);
    if (answer.dtype.startsWith('complex')) expectNear(plain(found.values), arrays.values ?? []); // hypot and atan2 may round otherwise
    else expect(plain(found.values)).toEqual(arrays.values);
    expectNear(Object.keys(summary).map((name) => found.summary[name as keyof typeof found.summary]), Object.values(summary));
  });

  test.each(lines)('are lines as a server answers to $name', async ({asked: wanted, answer}) => {
    const {step = [], call, category = [], ...columns} = answer.arrays;
    const found = await answers.tensorLine(MODEL, wanted as unknown as WantedLine);
    expect([plain(found.step), plain(found.call), found.skipped]).toEqual([step, call, answer.skipped]);
    expect(found.categories).toEqual(category.map((at) => answer.categories?.[at as number]));
    expect([...found.columns.keys()]).toEqual(Object.keys(columns));
    for (const [name, values] of found.columns) expectNear(plain(values), columns[name] ?? []);
  });

  test('have their dependency graph', async () => {
    expect(await answers.tensorGraph(MODEL, 10)).toEqual(graph);
    await expect(answers.tensorGraph(MODEL, 11)).rejects.toThrow('no dependency graph of step 11');
  });

  test('are listed with labels and reasons', async () => {
    const kept = await answers.tensors(MODEL, '');
    expect(kept).toMatchObject({steps: [0, 10, 20], labels: ['odd', 'odd', 'odd'], reasons: {10: ['loss above 3']}, note: ''});
    expect(kept?.tensors).toHaveLength(8);
    expect(await answers.tensors(MODEL, kept?.version ?? '')).toBeNull();
  });

  test.each([
    {what: 'at', wanted: {at: '0,0'}, error: 'selects along 2 dimensions'},
    {what: 'an index', wanted: {at: '7,:,:'}, error: 'no index or range'},
    {what: 'a word', wanted: {at: 'x,:,:'}, error: 'no index or range'},
    {what: 'a step', wanted: {step: 5}, error: 'not have the tensor at step 5'},
  ])('refuse $what that is not there', async ({wanted, error}) => {
    await expect(answers.tensor(MODEL, {...parts[0]!.asked, shrink: [], ...wanted} as unknown as WantedPart)).rejects.toThrow(error);
  });
});

describe('a selection of more than can be shown', () => {
  const [{shape, values, summary, cases: selections}] = merged;
  const numbers = Float32Array.from(values, (one: number | string) => (typeof one === 'number' ? one : one === 'nan' ? NaN : Infinity));

  test.each(selections as any[])('of $at in $most entries merges as the server does', ({at, shrink, most, factors, arrays}) => {
    const found = selected(numbers, shape, spansOf(at, shape), shrink, most);
    expect(found.factors).toEqual(factors);
    expectNear(plain(found.values), arrays.mean);
    for (const name of ['low', 'high', 'bad'] as const) expect(plain(found.merged![name])).toEqual(arrays[name]);
    const finite = (all: (number | string)[]): unknown[] => all.map((one) => (typeof one === 'number' ? one : 'bad'));
    expect(finite(plain(found.merged!.topValue))).toEqual(finite(arrays['top.value']));
  });

  test('has the same facts', () => expectNear(Object.values(summaryOf(numbers)) as number[], Object.keys(summaryOf(numbers)).map((name) => summary[name])));
});
