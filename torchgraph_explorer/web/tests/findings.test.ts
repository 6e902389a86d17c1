import {readFileSync} from 'node:fs';
import {signal} from '@preact/signals';
import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';
import type {Band, Finding, Findings, SameFindings} from '../src/api/types';
import {limitsIn, withLimits} from '../src/charts/limits';
import {bandIn, bandText} from '../src/findings/bands';
import {countText, findingKey, placesText, placeText, textPieces, titleOf, whenText, withStepsApart} from '../src/findings/names';
import {beginMarks} from '../src/findings/onTimeBar';
import {badgeText, badgeWords, earlierOrigin, findingMarks, seriesOf, tensorOf} from '../src/findings/places';
import {equalRoots, kindsText, rootsOf, worst} from '../src/findings/roots';
import {ModelFindings} from '../src/model/findings';
import {GRAPH, series} from './fixtures';

interface Case {
  about: string;
  findings: Partial<Finding>[];
  groups: number[][];
  places: (string | null)[];
}

/** The cases that Python's tests read, too. */
const CASES = JSON.parse(readFileSync(new URL('../../../tests/contracts/equal_findings.json', import.meta.url), 'utf8')) as Case[];

const ZEROS: Band = {statistic: 'zero_fraction', kind: 'value', low: null, high: 0.98};

function finding(id: number, fields: Partial<Finding> = {}): Finding {
  const place = {module: 'block.act', call: 0, path: 'output', step: 3, last_step: 9};
  const words = {text: 'Text.', advice: 'Advice.', evidence: {}, causes: [], band: null};
  return {id, kind: 'dead-units', severity: 'warning', ...place, ...words, ...fields};
}

const WHOLE = {module: null, call: null, path: null};

describe('the origin of what is not finite', () => {
  const known = finding(1, {kind: 'nan', step: 32, evidence: {not_finite_then: 1}});
  test.each([
    ['is that of the finding of the same step that knows it', [finding(0, {step: 32}), known], known],
    ['is not that of another step', [{...known, step: 40}], null],
    ['is not taken from what was recorded alone', [{...known, evidence: {}}], null],
    ['is not known without findings', [], null],
  ])('%s', (_, findings, origin) => expect(earlierOrigin(findings, 32)).toBe(origin));
});

describe('the names of findings', () => {
  test.each([
    [{}, 'dead-units@block.act#0/output'],
    [{call: null, path: 'weight'}, 'dead-units@block.act/weight'],
    [{call: null, path: null}, 'dead-units@block.act'],
    [WHOLE, 'dead-units'],
    [{module: ''}, 'dead-units@#0/output'],
  ])('the key of %j is %s', (fields, key) => expect(findingKey(finding(0, fields))).toBe(key));

  test.each([
    ['dead-units', 'Dead units'],
    ['nan', 'NaN or infinity'],
    ['mine', 'Mine'],
    ['', ''],
  ])('%s is read as %s', (kind, title) => expect(titleOf(kind)).toBe(title));

  test.each([
    [{}, 'block.act, output'],
    [{call: 1, path: null}, 'block.act (call 2)'],
    [{module: ''}, 'Net, output'],
    [WHOLE, 'whole run'],
  ])('%j is at %s', (fields, place) => expect(placeText(finding(0, fields), 'Net')).toBe(place));

  test.each([
    [['aux_0', 'aux_1', 'aux_12'], 'aux_0–12'],
    [['blocks.0.fc, weight', 'blocks.11.fc, weight'], 'blocks.0–11.fc, weight'],
    [['q', 'k', 'v'], 'q … v'],
    [['a.0.b.0', 'a.1.b.1'], 'a.0.b.0 … a.1.b.1'],
    [['layer1', 'layer1x'], 'layer1 … layer1x'],
  ])('%j together are at %s', (places, text) => expect(placesText(places)).toBe(text));

  test.each([
    [4, 4, 4, 'step 4'],
    [4, 9, 9, 'since step 4'],
    [4, 9, 20, 'steps 4–9'],
    [4000, 9000, null, 'steps 4,000–9,000'],
  ])('from step %i to %i of %s it was seen %s', (step, last_step, latest, text) => expect(whenText({step, last_step}, latest)).toBe(text));

  test.each([
    ['`stem` made NaN', ['', 'stem', ' made NaN']],
    ['nothing', ['nothing']],
    ['a ` alone', ['a ` alone']],
    ['`a` and `b', ['', 'a', ' and `b']],
  ])('%s is cut where names are', (text, pieces) => expect(textPieces(text)).toEqual(pieces));

  test('are counted', () => expect([1, 2000].map(countText)).toEqual(['1 finding', '2,000 findings']));
});

describe('root causes', () => {
  const all = [
    finding(0),
    finding(1, {kind: 'nan', severity: 'error', causes: [0]}),
    finding(2, {causes: [1]}),
    finding(3, {severity: 'info', ...WHOLE}),
    finding(4, {causes: [99]}),
  ];

  test('stand with all that follows from them, and a cause that was left out makes a root', () => {
    const roots = rootsOf(all).map((root) => [root.finding.id, root.followers.map(({id}) => id)]);
    expect(roots).toEqual([
      [0, [1, 2]],
      [3, []],
      [4, []],
    ]);
  });

  test.each(CASES)('those that say the same of neighbours stand together: $about', ({findings, groups, places}) => {
    const told = findings.map((one, id) => finding(id, {kind: 'unused-module', call: null, path: null, text: 'It is never called.', ...one}));
    const found = equalRoots(rootsOf(told)).map((all) => all.map((root) => root.finding));
    expect(found.map((all) => all.map(({id}) => id))).toEqual(groups);
    expect(found.map((all) => (all.length > 1 ? placesText(all.map((one) => one.module!)) : all[0]!.module))).toEqual(places);
  });

  test('the worst counts', () => expect([worst(all), worst(all.slice(2, 3)), worst([])]).toEqual(['error', 'warning', 'info']));
  test('kinds are told with the worst first', () => expect(kindsText(all)).toBe('NaN or infinity, dead units ×4'));
});

describe('the places of findings', () => {
  const known = [series(0, {module: 'block.act', path: 'output', kind: 'grad_norm'}), series(1, {module: 'block.act', path: 'output'})];

  test.each([
    ['the values', {}, 1],
    ['what its band is of', {band: {...ZEROS, kind: 'grad_norm' as const}}, 0],
    ['nothing of a tensor that was not recorded', {path: 'output[1]'}, undefined],
    ['nothing of the whole run', WHOLE, undefined],
  ])('the series is %s', (_, fields, id) => expect(seriesOf(finding(0, fields), known)?.series).toBe(id));

  test.each([
    [{path: 'input[0]'}, 'input'],
    [{call: null, path: 'weight'}, 'param'],
    [{path: 'output[1]'}, 'output'],
  ])('the role of an unrecorded tensor %j is guessed', (fields, role) => expect(tensorOf(finding(0, fields), known)?.role).toBe(role));

  test('calls and modules are marked, and all that is around them', () => {
    const {calls, modules} = findingMarks(GRAPH, [finding(0, {call: 1}), finding(1, {module: 'spare', call: null, path: null}), finding(2, WHOLE)]);
    expect([...calls].map(([key, {own, inside}]) => [key, own.length, inside.length])).toEqual([
      ['block.act#1', 1, 0],
      ['block#0', 0, 1],
      ['#0', 0, 1],
    ]);
    expect([...modules].map(([name, {own, inside}]) => [name, own.length, inside.length])).toEqual([
      ['block.act', 1, 0],
      ['', 0, 2],
      ['block', 0, 1],
      ['spare', 1, 0],
    ]);
  });

  test('what is of no single call is marked on all calls of its module, and once around them', () => {
    const {calls} = findingMarks(GRAPH, [finding(0, {call: null, path: null})]);
    expect([...calls].map(([key, {own, inside}]) => [key, own.length, inside.length])).toEqual([
      ['block.act#0', 1, 0],
      ['block.act#1', 1, 0],
      ['block#0', 0, 1],
      ['#0', 0, 1],
    ]);
  });

  test.each([
    [[finding(0)], [], 'Dead units', '1 finding, warning: Dead units'],
    [[finding(0), finding(1, {kind: 'nan', severity: 'error'} as const)], [], '2 findings', '2 findings, error: Dead units, NaN or infinity'],
    [[], [finding(0)], '1 finding inside', '1 finding inside, warning'],
  ])('a badge says what it stands for', (own, inside, text, words) => {
    expect([badgeText({own, inside}), badgeWords({own, inside})]).toEqual([text, words]);
  });
});

describe('on the time bar', () => {
  test('findings that begin close to each other are one mark, of the worst severity', () => {
    const found = [finding(0, {step: 500}), finding(1, {step: 501, severity: 'error'}), finding(2, {step: 0}), finding(3, {step: -1})];
    const marks = beginMarks(found, (step) => (step < 0 ? NaN : step / 1000));
    expect(marks.map(({share, severity, findings}) => [share, severity, findings.length])).toEqual([
      [0, 'warning', 1],
      [0.5, 'error', 2],
    ]);
  });
});

describe('the band of a rule', () => {
  const own = series(1, {module: 'block.act', path: 'output'});

  test.each([
    ['its series', ZEROS, own, ZEROS],
    ['another kind of its tensor', ZEROS, {...own, kind: 'grad_norm' as const}, null],
    ['another call', ZEROS, {...own, call: 1}, null],
    ['a statistic that is not known', {...ZEROS, statistic: 'kurtosis'}, own, null],
    ['no bound', {...ZEROS, high: null}, own, null],
  ])('in %s', (_, band, one, expected) => expect(bandIn(finding(0, {band}), one)).toEqual(expected));

  test.each([
    [ZEROS, 'Not allowed: share of zeros above 0.98'],
    [{statistic: 'elements', kind: 'value' as const, low: -3, high: 3}, 'Not allowed: elements below −3 or above 3'],
    [{...ZEROS, low: 0.5, high: null}, 'Not allowed: share of zeros below 0.5'],
  ])('is told', (band, text) => expect(bandText(band)).toBe(text));

  test.each([
    ['line', 'zero_fraction', ZEROS, {low: -Infinity, high: 0.98}],
    ['line', 'mean', ZEROS, null],
    ['heat', 'zero_fraction', ZEROS, null],
    ['bands', 'mean', {...ZEROS, statistic: 'elements', low: -3, high: 3}, {low: -3, high: 3}],
    ['line', 'mean', {...ZEROS, statistic: 'elements'}, null],
    ['heat', 'mean', null, null],
  ] as const)('in a plot of %s of %s', (mode, statistic, band, limits) => expect(limitsIn(band, {mode, statistic})).toEqual(limits));

  test('is in the picture', () => {
    expect(withLimits({low: 200, high: 300}, {low: -Infinity, high: 10})).toEqual({low: 10, high: 300});
    expect(withLimits(null, {low: 0, high: 10})).toBeNull();
  });
});

describe('what the rules say is asked for', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const answer = (version: string, is_complete: boolean, findings: Finding[] = []): Findings => {
    return {version, is_complete, findings, left_out: 0, looked_at: null, recorded: 1, problem: null};
  };

  test('when something was recorded, again while it is not complete, and never without news', async () => {
    const news = signal<unknown>(null);
    const same: SameFindings = {version: 'b', is_same: true, is_complete: true};
    const answers = [answer('a', false), answer('b', true, [finding(0)]), same];
    const asked: string[] = [];
    const found = new ModelFindings(news, async (version) => (asked.push(version), answers[asked.length - 1]!));
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual([]);
    news.value = 1;
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual(['', 'a']);
    expect(found.known.value?.findings).toHaveLength(1);
    const before = found.known.value;
    news.value = 2;
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual(['', 'a', 'b']);
    expect(found.known.value).toBe(before);
    answers.push(answer('c', true, [finding(0)]));
    news.value = 3;
    await vi.advanceTimersByTimeAsync(5000);
    expect(found.known.value?.version).toBe('c');
    expect(found.known.value?.findings).toBe(before?.findings);
    found.close();
    news.value = 4;
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(4);
  });

  test('again after a failure, and what is known stays', async () => {
    const news = signal<unknown>(1);
    const before = answer('a', true, [finding(0)]);
    let tries = 0;
    const found = new ModelFindings(news, async () => (++tries < 3 ? Promise.reject(new Error('away')) : answer('b', true)), before);
    await vi.advanceTimersByTimeAsync(500);
    expect(found.known.value).toBe(before);
    await vi.advanceTimersByTimeAsync(5000);
    expect([tries, found.known.value?.version]).toEqual([3, 'b']);
    found.close();
  });
});

test.each([
  ['At step 10000010, the inputs were finite; steps 1234 to 5 were not.', 'At step 10,000,010, the inputs were finite; steps 1,234 to 5 were not.'],
  ['It has 12345 elements at step 999.', 'It has 12345 elements at step 999.'],
])('the steps of %s have their thousands apart', (text, expected) => {
  expect(withStepsApart(text)).toBe(expected);
});
