import {describe, expect, test} from 'vitest';

import type {ModuleGraph, SeriesInfo, TensorInfo} from '../../src/api/types';
import {subjectOf} from '../../src/view/panels/subject';

const tensor = (path: string): TensorInfo => ({path, shape: [null, 3], dtype: 'float32', requires_grad: true});
const module = {class_path: '', extra_repr: [], own_params: 0, total_params: 0, trainable_params: 0, forward_parameters: ['x']};

const graph: ModuleGraph = {
  graph: 0,
  revision: 0,
  first_step: 0,
  modules: [
    {...module, name: '', class_name: 'Net', params: []},
    {...module, name: 'act', class_name: 'ReLU', params: [tensor('slope')]},
  ],
  calls: [
    {module: 0, call: 0, parent: null, inputs: [tensor('input[0]')], outputs: []},
    {module: 1, call: 0, parent: 0, inputs: [], outputs: []},
    {module: 1, call: 1, parent: 0, inputs: [], outputs: [tensor('output')]},
  ],
  nodes: [{kind: 'attached', inside: 0, call: null, tensor: tensor('features')}],
  edges: [],
};

describe('the subject of a panel', () => {
  test.each([
    {key: '#0', title: 'Net', call: '', detail: 'Net'},
    {key: 'act#0', title: 'act', call: '', detail: 'ReLU'},
    {key: 'act#1', title: 'act', call: '#2', detail: 'ReLU'},
    {key: '#0/input[0]', title: 'Net › x', call: '', detail: 'tensor'},
    {key: '#0@features', title: 'Net › features', call: '', detail: 'attached tensor'},
    {key: 'gone#0', title: 'gone', call: '', detail: ''},
  ])('$key is $title', ({key, ...expected}) => {
    expect(subjectOf(key, graph)).toMatchObject(expected);
  });

  test.each([
    {key: 'act#1', role: 'output', path: 'output'},
    {key: 'act#1', role: 'param', path: 'slope'},
    {key: '#0', role: 'input', path: 'input[0]'},
    {key: '#0@features', role: 'attached', path: 'features'},
  ] as const)('knows the shape of the $role of $key', ({key, role, path}) => {
    const series: SeriesInfo = {series: 0, module: '', call: 0, role, path, kind: 'value'};
    expect(subjectOf(key, graph).tensor(series)).toEqual(tensor(path));
    expect(subjectOf(key, null).tensor(series)).toBeNull();
  });
});
