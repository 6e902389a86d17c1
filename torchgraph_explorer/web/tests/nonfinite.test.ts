import {describe, expect, test} from 'vitest';
import {STATISTICS} from '../src/api/types';
import type {FirstNonFinite, StepStatistics, NonFinite, SeriesInfo, SeriesName} from '../src/api/types';
import {badTensors, marksOf, markText, markWords} from '../src/graph/nonfinite';
import type {BadTensor, Marks} from '../src/graph/nonfinite';
import {firstText, troubleTitle} from '../src/graph/troubleText';
import {marksOnBar, nearestBad, spansOf} from '../src/view/time/badSteps';
import {callKey} from '../src/graph/keys';
import {NODE_MEASURES} from '../src/statistics';
import type {Row} from '../src/statistics';
import {extended} from '../src/model/nonfinite';
import {stateText, stateOf} from '../src/graph/nodeState';
import {GRAPH, series} from './fixtures';

const INDEX = new Map(GRAPH.calls.map((_, i) => [callKey(GRAPH, i), i]));

function row(fields: Partial<Row>): Row {
  const zeros = Object.fromEntries(STATISTICS.map((name) => [name, 0])) as Row;
  return {...zeros, count: 8, sampled: 8, ...fields};
}

function frame(rows: Row[]): StepStatistics {
  const statistics = Float32Array.from(rows.flatMap((one) => STATISTICS.map((name) => one[name])));
  return {epoch: 0, step: 0, series: Uint32Array.from(rows.keys()), statistics};
}

function bad(fields: Partial<SeriesName>, holds: Partial<BadTensor> = {hasNan: true}): BadTensor {
  const {series: _, ...name} = series(0, fields);
  return {name, hasNan: false, hasInfinite: false, ...holds};
}

function textsOf(marks: Marks): Record<string, string> {
  const calls = [...marks.calls].map(([call, mark]) => [callKey(GRAPH, call), markText(mark)]);
  return Object.fromEntries(calls) as Record<string, string>;
}

describe('the tensors of a step that hold NaN or infinity', () => {
  // The cases of tests/record/test_nonfinite.py, whose rule this is.
  const LOW = {negative_infinity: 3};
  const MASK = {...LOW, zeros: 5, sampled: 5};
  const SCORES = {...LOW, zeros: 1, sampled: 5};
  const INPUT: SeriesInfo = series(0, {module: 'attention', role: 'input', path: 'mask'});
  const OUTPUT: SeriesInfo = series(1, {module: 'attention'});
  const graded: SeriesInfo[] = [{...INPUT, series: 2, kind: 'grad_norm'}, {...OUTPUT, series: 3, kind: 'grad_norm'}];

  test.each([
    ['an additive mask', MASK, {}, false, []],
    ['an additive mask where the output is NaN', MASK, {nan: 1}, false, [1]],
    ['zeros and infinity that gradient reaches, and goes on', MASK, LOW, true, [0, 1]],
    ['masked scores before a softmax', SCORES, {}, true, []],
    ['goes on to the output', SCORES, LOW, true, [0, 1]],
    ['all masked makes NaN', LOW, {nan: 1}, false, [0, 1]],
    ['NaN in a mask', {...MASK, nan: 1}, {}, false, [0]],
    ['plus infinity goes in', {positive_infinity: 1}, {}, false, [0]],
    ['an output of minus infinity', {}, LOW, false, [1]],
    ['a module that makes masks', {}, MASK, false, []],
  ] as const)('%s', (_, input, output, isGraded, expected) => {
    const all = [INPUT, OUTPUT, ...(isGraded ? graded : [])];
    const found = badTensors(frame([row(input), row(output)]), all);
    expect(found.map(({name}) => (name.role === 'input' ? 0 : 1))).toEqual(expected);
  });

  test('are those of an exported page too that it has no numbers of', () => {
    const hidden = [{module: 'a', call: 0, role: 'output', path: 'output', kind: 'value', has_nan: false, has_infinite: true}] as const;
    expect(badTensors({...frame([]), hidden}, [])).toEqual([bad({module: 'a'}, {hasInfinite: true})]);
  });

  test('are none before a step is known', () => {
    expect(badTensors(null, [])).toEqual([]);
  });
});

describe('what is marked', () => {
  test('is the call, and all that it is inside of', () => {
    const marks = marksOf(GRAPH, [bad({module: 'block.act', call: 1})], INDEX);
    expect(textsOf(marks)).toEqual({'block.act#1': 'NaN', 'block#0': 'NaN inside', '#0': 'NaN inside'});
    expect([...marks.modules.keys()].sort()).toEqual(['', 'block', 'block.act']);
  });

  test('is what a call has itself before what is inside of it', () => {
    const marks = marksOf(GRAPH, [bad({}, {hasInfinite: true}), bad({module: 'block.fc'}), bad({module: '', kind: 'grad_norm'})], INDEX);
    expect(textsOf(marks)).toEqual({'block.fc#0': 'NaN', 'block#0': '∞', '#0': 'NaN gradient'});
  });

  test('says values before gradients', () => {
    const found = [bad({kind: 'grad_norm'}), bad({}, {hasInfinite: true}), bad({kind: 'grad_norm', role: 'input', path: 'input[0]'})];
    const mark = marksOf(GRAPH, found, INDEX).calls.get(1)!;
    expect(markText(mark)).toBe('∞');
    expect(markWords(mark)).toBe('∞ in output, NaN in gradient of output, NaN in gradient of input[0]');
  });

  test('names three tensors, values first, and counts the others', () => {
    const input = (path: string): BadTensor => bad({role: 'input', path});
    const found = [bad({kind: 'grad_norm'}), bad({}, {hasInfinite: true}), input('x'), input('y'), bad({kind: 'grad_norm', role: 'input', path: 'x'})];
    expect(markWords(marksOf(GRAPH, found, INDEX).calls.get(1)!)).toBe('∞ in output, NaN in x, NaN in y and 2 more');
  });

  test('is every call of a module for its parameter', () => {
    const marks = marksOf(GRAPH, [bad({module: 'block.act', call: null, role: 'param', path: 'weight'})], INDEX);
    expect(Object.keys(textsOf(marks)).sort()).toEqual(['#0', 'block#0', 'block.act#0', 'block.act#1']);
  });

  test('is the node of an input or attached tensor, and the call around it', () => {
    const marks = marksOf(GRAPH, [bad({module: '', role: 'attached', path: 'logits'})], INDEX);
    expect([...marks.nodes.keys()].sort()).toEqual([0, 3]);
    expect(textsOf(marks)).toEqual({'#0': 'NaN inside'});
    expect([...marksOf(GRAPH, [bad({module: '', role: 'input', path: 'input[0]'})], INDEX).nodes.keys()].sort()).toEqual([0, 1]);
  });

  test('is an edge out of what gives it, into what takes it', () => {
    const {gives, takes} = marksOf(GRAPH, [bad({module: '', role: 'input', path: 'input[0]'}), bad({role: 'input', path: 'input[0]'})], INDEX);
    expect([gives.has(1), takes.has(2), gives.has(2)]).toEqual([true, true, false]);
  });

  test('is the module alone where this graph does not call it', () => {
    const marks = marksOf(GRAPH, [bad({module: 'spare', call: null, role: 'param', path: 'weight'})], INDEX);
    expect([marks.calls.size, [...marks.modules.keys()].sort()]).toEqual([0, ['', 'spare']]);
  });

  test('is nothing in a clean step', () => {
    expect(marksOf(GRAPH, [], INDEX).modules.size).toBe(0);
  });
});

const MEASURE = Object.fromEntries(NODE_MEASURES.map((one) => [one.name, one]));

describe('what a node is coloured by', () => {
  test.each([
    ['std', {std: 0.5}, 'value', '0.5'],
    ['std', {std: 0}, 'zero', '0'],
    ['std', {std: 0.5, nan: 3}, 'nonfinite', '0.5 of the finite elements; 3 NaN'],
    ['std', {std: NaN, nan: 8, sampled: 0}, 'nonfinite', 'all 8 NaN'],
    ['mean', {mean: NaN, nan: 2, negative_infinity: 6, sampled: 0}, 'nonfinite', 'all 8 NaN or infinite'],
    ['max', {max: NaN, positive_infinity: 8, sampled: 0}, 'nonfinite', 'all 8 infinite'],
    ['std', {std: NaN, count: 0, sampled: 0}, 'empty', 'no elements'],
    ['nonfinite', {}, 'zero', '0'],
    ['nonfinite', {count: 0, sampled: 0}, 'empty', 'no elements'],
    ['nonfinite', {nan: 3}, 'value', '3'],
    ['grad_norm', {mean: Infinity}, 'nonfinite', '∞'],
  ] as const)('by %s of %j is %s', (name, fields, kind, text) => {
    const state = stateOf(row(fields), MEASURE[name]!);
    expect(state.kind).toBe(kind);
    expect(stateText(state, MEASURE[name]!)).toBe(text);
  });

  test('says where there is nothing', () => {
    expect(stateText(undefined, MEASURE['std']!)).toBe('not recorded at this step');
  });
});

describe('the first NaN', () => {
  const first = (fields: Partial<NonNullable<FirstNonFinite['tensor']>>): FirstNonFinite => {
    const {series: _, ...name} = series(0, {module: 'stage1.0.conv1'});
    return {step: 1234, tensor: {...name, nan: 3, infinite: 0, count: 9, ...fields}};
  };

  test.each([
    [first({}), 'NaN at step 1,234', 'stage1.0.conv1 (call 1), output'],
    [first({nan: 0, infinite: 2, call: 1}), 'infinity at step 1,234', 'stage1.0.conv1 (call 2), output'],
    [first({role: 'param', path: 'weight', call: 0}), 'NaN at step 1,234', 'stage1.0.conv1, parameter weight'],
    [first({role: 'param', path: 'weight', kind: 'grad', call: null}), 'NaN at step 1,234', 'stage1.0.conv1, gradient of weight'],
    [first({kind: 'grad_norm'}), 'NaN at step 1,234', 'stage1.0.conv1 (call 1), gradient of output'],
    [first({module: '', role: 'input', path: 'input[0]'}), 'NaN at step 1,234', 'Net (call 1), input[0]'],
    [first({role: 'attached', path: 'logits'}), 'NaN at step 1,234', 'stage1.0.conv1 (call 1), attached tensor logits'],
    [{step: 3, tensor: null}, 'NaN or infinity at step 3', ''],
  ])('is named: %#', (one, what, place) => {
    expect(firstText(one, 'Net')).toEqual({what, place});
  });

  test('says how much there is, and where else', () => {
    const known = answer({bad: [[1234, 1240, 4], [1300, 1300, 1]], frames: 2000, others: ['net (eval)'], first: first({})});
    expect(troubleTitle(known, [0, 2000]).split('\n')).toEqual([
      '3 NaN of 9 elements.',
      '5 of 2,000 logged steps have NaN or infinity.',
      'So has net (eval).',
      'Step 1,234 is not on this page.',
      'Press to go there.',
    ]);
  });
});

function answer(fields: Partial<NonFinite>): NonFinite {
  return {epoch: 0, from: 0, frames: 0, bad: [], first: null, others: [], is_complete: true, are_others_complete: true, ...fields};
}

test('what is new is joined to what is held', () => {
  const held = answer({frames: 5, bad: [[3, 4, 2]]});
  expect(extended(held, answer({from: 5, frames: 7, bad: [[5, 5, 1]]})).bad).toEqual([[3, 4, 2], [5, 5, 1]]);
  expect(extended(held, answer({from: 5, frames: 7})).bad).toBe(held.bad);
  expect(extended(held, answer({from: 0, frames: 1})).bad).toEqual([]);
  expect(extended(held, answer({epoch: 1, from: 5, frames: 7})).bad).toEqual([]);
});

describe('on the time bar', () => {
  const steps = [0, 10, 20, 30, 40];

  test.each([
    ['one', [[20, 20, 1]], [{from: 1.5, to: 2.5}]],
    ['several in a row', [[10, 30, 3]], [{from: 0.5, to: 3.5}]],
    ['one between two that an exported page has', [[24, 26, 2]], [{from: 2.25, to: 2.75}]],
    ['one that goes on where the page has nothing', [[26, 34, 5]], [{from: 2.5, to: 3.5}]],
  ] as [string, NonFinite['bad'], unknown][])('a stretch of %s stands at its frames', (_, stretches, spans) => {
    expect(spansOf(stretches, steps)).toEqual(spans);
  });

  test('a single step of ten thousand is marked', () => {
    const [mark, ...others] = marksOnBar([{from: 6999.5, to: 7000.5}], 9999, 500);
    expect(others).toEqual([]);
    expect(mark!.left).toBeCloseTo(70, 0);
    expect(mark!.width).toBeGreaterThan(0);
  });

  test('neighbouring columns are one mark, and the ends are marked', () => {
    expect(marksOnBar([{from: -0.5, to: 0.5}, {from: 0.5, to: 1.5}, {from: 3.5, to: 4.5}], 4, 8)).toEqual([
      {left: 0, width: 37.5},
      {left: 87.5, width: 12.5},
    ]);
  });

  test('nothing is marked in a clean run', () => {
    expect(marksOnBar(spansOf([], steps), 4)).toEqual([]);
  });

  test('a single frame can be bad', () => {
    expect(marksOnBar([{from: -0.5, to: 0.5}], 0)).toHaveLength(1);
  });

  test('a press beside a bad step shows that step', () => {
    const spans = [{from: 99.5, to: 100.5}, {from: 299.5, to: 310.5}];
    expect([96, 103, 110, 305, 312].map((frame) => nearestBad(spans, frame, 5))).toEqual([100, 100, 110, 305, 310]);
    expect(nearestBad([{from: 2.25, to: 2.75}], 2, 5)).toBe(2);
  });
});
