/** A small graph: the model has a block whose activation is called twice, and an attached tensor. */

import type {Call, Module, ModuleGraph, SeriesInfo, TensorInfo} from '../src/api/types';

export function tensor(path: string, shape: (number | null)[] = [null, 8]): TensorInfo {
  return {path, shape, dtype: 'float32', requires_grad: true};
}

export function module(name: string, class_name: string, facts: Partial<Module> = {}): Module {
  const counts = {own_params: 0, total_params: 0, trainable_params: 0};
  return {name, class_name, class_path: `net.${class_name}`, extra_repr: [], params: [], ...counts, ...facts};
}

function call(index: number, parent: number | null, number = 0): Call {
  return {module: index, call: number, parent, inputs: [tensor('input[0]')], outputs: [tensor('output')]};
}

export const GRAPH: ModuleGraph = {
  graph: 0,
  revision: 0,
  first_step: 0,
  modules: [module('', 'Net'), module('block', 'Block'), module('block.fc', 'Linear'), module('block.act', 'ReLU'), module('spare', 'Linear')],
  calls: [call(0, null), call(1, 0), call(2, 1), call(3, 1), call(3, 1, 1)],
  nodes: [
    {kind: 'call', inside: null, call: 0, tensor: null},
    {kind: 'input', inside: 0, call: null, tensor: tensor('input[0]')},
    {kind: 'call', inside: 0, call: 1, tensor: null},
    {kind: 'attached', inside: 0, call: null, tensor: tensor('logits')},
    {kind: 'call', inside: 1, call: 2, tensor: null},
    {kind: 'call', inside: 1, call: 3, tensor: null},
    {kind: 'call', inside: 1, call: 4, tensor: null},
    {kind: 'input', inside: 2, call: null, tensor: tensor('input[0]')},
  ],
  edges: [{source: 1, target: 2, gradient: true}],
};

export function series(id: number, fields: Partial<SeriesInfo>): SeriesInfo {
  return {series: id, module: 'block', call: 0, role: 'output', path: 'output', kind: 'value', ...fields};
}
