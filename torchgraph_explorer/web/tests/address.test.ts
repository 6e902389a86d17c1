import {describe, expect, test} from 'vitest';
import {COMPARISON_DEFAULTS} from '../src/comparison/choice';
import {TENSOR_DEFAULTS} from '../src/tensors/choice';
import {changedOptions, decode, encode} from '../src/view/state/address';
import type {Choices} from '../src/view/state/address';

const NOTHING: Choices = {
  runFilter: '',
  run: null,
  model: null,
  graph: null,
  inside: null,
  selected: null,
  pins: [],
  step: null,
  optimizer: null,
  chart: {},
  colourBy: 'class',
  chosenCalls: {},
  areCallsSingle: false,
  stacked: [],
  areWidthsShown: true,
  theme: 'auto',
  hidden: [],
  scalars: null,
  curve: null,
  xray: null,
  xrayStatistic: null,
  xrayFace: 'picture',
  xrayStretch: null,
  table: {by: 'module', isDescending: false, words: ''},
  network: {by: 'tree', words: ''},
  since: null,
  view: 'graph',
  ownView: null,
  tensors: TENSOR_DEFAULTS,
  finding: null,
  comparison: COMPARISON_DEFAULTS,
};

const EVERYTHING: Choices = {
  runFilter: 'lr=(0.1|1)$ & more',
  run: 'sweep/lr=0.1 & more',
  model: 'generator',
  graph: 0,
  inside: "blocks.0#1",
  selected: "blocks.0#1/input['a b']",
  pins: [
    {key: '#0@logits', colour: 7},
    {key: 'fc#0', colour: 0, isOfAll: true},
  ],
  step: 0,
  optimizer: 'Adam #2',
  chart: {mode: 'line', statistic: 'std', range: 'full', scale: 'symlog', counts: 'log', time: 'scalar:train/tokens & more', curves: 'log', runs: 'beside', bins: 32, reject: 0.05},
  colourBy: 'grad_norm',
  chosenCalls: {'cell#0': 412, "a.b#2/input['x']": 3},
  areCallsSingle: true,
  stacked: ['layers.0#0', 'blocks.a b.0#1'],
  areWidthsShown: false,
  theme: 'dark',
  hidden: ['modules', 'steps'],
  scalars: true,
  curve: 'train/loss',
  xray: true,
  xrayStatistic: 'zeros',
  xrayFace: 'table',
  xrayStretch: {from: 20, to: 60.25},
  table: {by: 'output_std', isDescending: true, words: 'conv 1'},
  network: {by: 'total', words: 'Linear'},
  since: 100,
  view: 'tensors',
  ownView: 'attention of a head',
  tensors: {
    id: '["a, b|c",null,"param","weight"]',
    kind: 'gradient',
    call: 4,
    sample: 'std',
    look: 'heat',
    scale: 'facet',
    part: 'imag',
    rank: 3,
    beside: {run: 'sweep:2 & more'},
    other: '["x",0,"output","output"]',
    over: 'calls',
    closed: ['time'],
    sorting: {column: 0, isDescending: true},
    isGraph: true,
    node: 'encoder@1',
    pathTo: 'loss',
    areAllShown: true,
    graphZoom: 0.5,
    label: '05 iterations',
    axes: 'srfc',
    at: [0, 7, 0, 0],
    ranges: ':,3:9,:,:',
    pick: [0, 1, 2, 3],
    page: 2,
    filter: '|x| > 0.5',
  },
  finding: "dead-units@blocks.0#1/output['a & b']",
  comparison: {
    runs: [
      {run: 'sweep/lr=0.1 & more', model: 'a/b %', number: 1},
      {run: '2026-11-21_08-43-04', model: 'generator', number: 12},
    ],
    isAll: false,
    renames: 'layer1.* = stage1.*\nhead = fc',
    against: 12,
  },
};

describe('the address', () => {
  test.each([
    ['nothing chosen', NOTHING],
    ['everything chosen', EVERYTHING],
    ['the whole graph of tensors', {...NOTHING, tensors: {...TENSOR_DEFAULTS, graphZoom: 'fit' as const}}],
    ['the top opened', {...NOTHING, inside: ''}],
    ['all runs compared', {...NOTHING, comparison: {...COMPARISON_DEFAULTS, isAll: true}}],
  ])('brings back the screen with %s', (_, choices) => {
    expect(decode(`#${encode(choices)}`)).toEqual(choices);
  });

  test('is empty while nothing is chosen', () => expect(encode(NOTHING)).toBe(''));

  test('takes what it does not understand as not said', () => {
    const odd = '#mode=pie&theme=blue&step=-3&bins=1e9&reject=x&pin=9.fc%230&pin=fc&unknown=1&hide=moon&scale=symlog&time=noon&scalars=x&with=run&with=0.a%2Fb&with=1.%25/b&against=-1&runs=pie&turn=x.fc%230&calls=many&face=oval&stretch=9-2&network=up';
    expect(decode(odd)).toEqual({...NOTHING, chart: {scale: 'symlog'}});
  });

  test('leaves out options that are as by default, but for those that sessions set', () => {
    expect(changedOptions({mode: 'heat', range: 'full', bins: 64})).toEqual({range: 'full', bins: 64});
  });
});
