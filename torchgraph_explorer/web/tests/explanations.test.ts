import {afterEach, describe, expect, test, vi} from 'vitest';
import {server} from '../src/api/server';
import type {Explanation} from '../src/api/types';
import {partsInOrder, targetOf} from '../src/findings/explanations';

afterEach(() => vi.unstubAllGlobals());

function answering(status: number, body: unknown): ReturnType<typeof vi.fn> {
  const fetched = vi.fn(async (_address: string) => new Response(JSON.stringify(body), {status}));
  vi.stubGlobal('fetch', fetched);
  return fetched;
}

describe('where a link of an explanation leads', () => {
  test.each([
    ['#the-loss', {explanation: 'the-loss'}],
    ['https://arxiv.org/abs/1412.6980', {address: 'https://arxiv.org/abs/1412.6980'}],
    ['measuring.md#nan-and-infinity', {page: 'docs/measuring.md'}],
    ['javascript:alert(1)', {page: 'docs/javascript:alert(1)'}],
    ['//evil.example', {page: 'docs///evil.example'}],
  ])('%s', (link, target) => expect(targetOf(link)).toEqual(target));
});

test('what to do comes before when it is reported', () => {
  const names = ['What it means', 'When it is reported', 'When it is not reported, or may be wrong', 'What to do', 'Severity', 'Of the group'];
  const explanation: Explanation = {name: 'nan', title: 'nan', line: '', is_kind: true, parts: names.map((name) => ({name, blocks: []}))};
  expect(partsInOrder(explanation).map(({name}) => name)).toEqual([names[0], names[3], names[2], names[1], names[4], names[5]]);
});

describe('an explanation from the server', () => {
  test('is asked for by its kind, whatever that contains', async () => {
    const fetched = answering(200, {name: 'x'});
    expect(await server.explanation('a&kind=<b>#/..')).toEqual({name: 'x'});
    expect(fetched.mock.calls[0]![0]).toBe('./api/explanation?kind=a%26kind%3D%3Cb%3E%23%2F..');
  });

  test('is null for a kind without an entry', async () => {
    answering(404, {error: 'There is no such kind.'});
    expect(await server.explanation('mine')).toBeNull();
  });

  test('fails with the sentence of the server', async () => {
    answering(500, {error: 'The texts are missing.'});
    await expect(server.explanation('nan')).rejects.toThrow('The texts are missing.');
  });
});
