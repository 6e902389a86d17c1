import {describe, expect, test} from 'vitest';
import {callKey, nodeKey, parseKey} from '../src/graph/keys';
import type {ParsedKey} from '../src/graph/keys';
import {belongs, groupSeries} from '../src/model/series';
import {GRAPH, series} from './fixtures';

describe('a key', () => {
  test.each([
    ['#0', {module: '', call: 0, kind: 'call', path: ''}],
    ['layer1.conv1#2', {module: 'layer1.conv1', call: 2, kind: 'call', path: ''}],
    ["layer1#0/input['mask/#1']", {module: 'layer1', call: 0, kind: 'placeholder', path: "input['mask/#1']"}],
    ['layer1#1@loss@2', {module: 'layer1', call: 1, kind: 'attached', path: 'loss@2'}],
  ])('%s is read', (key, parsed) => expect(parseKey(key)).toEqual(parsed));

  test.each(['', 'layer1', '#', 'layer1#x'])('%j is none', (text) => expect(parseKey(text)).toBeNull());

  test('names every node of a graph', () => {
    const keys = ['#0', '#0/input[0]', 'block#0', '#0@logits', 'block.fc#0', 'block.act#0', 'block.act#1', 'block.fc#0/input[0]'];
    expect(GRAPH.nodes.map((_, i) => nodeKey(GRAPH, i))).toEqual(keys);
    expect(callKey(GRAPH, 4)).toBe('block.act#1');
  });
});

describe('the series of a node', () => {
  const value = series(0, {});
  const gradient = series(1, {kind: 'grad_norm'});
  const input = series(2, {role: 'input', path: 'input[0]'});
  const weight = series(3, {role: 'param', path: 'weight', call: null});
  const attached = series(4, {role: 'attached', path: 'logits'});
  const second = series(5, {call: 1});
  const all = [value, gradient, input, weight, attached, second];
  const of = (key: string): number[] => all.filter((one) => belongs(one, parseKey(key) as ParsedKey)).map((one) => one.series);

  test.each([
    ['block#0', [0, 1, 2, 3]],
    ['block#1', [3, 5]],
    ['block#0/input[0]', [2]],
    ['block#0/output', [0, 1]],
    ['block#0@logits', [4]],
    ['other#0', []],
  ])('%s', (key, ids) => expect(of(key)).toEqual(ids));

  test('stand by role, with value and gradient of a tensor together', () => {
    expect(groupSeries(all.slice(0, 4))).toEqual({
      input: [{path: 'input[0]', value: input, gradient: null, optimizer: []}],
      output: [{path: 'output', value, gradient, optimizer: []}],
      params: [{path: 'weight', value: weight, gradient: null, optimizer: []}],
      attached: [],
      edge: [],
    });
  });

  test('keep what an optimizer did with a parameter beside its value and gradient', () => {
    const [grad, taken, update] = (['grad', 'optimizer_grad', 'update'] as const).map((kind) => ({...weight, kind}));
    expect(groupSeries([weight, grad!, taken!, update!]).params).toEqual([
      {path: 'weight', value: weight, gradient: grad, optimizer: [taken, update]},
    ]);
  });
});
