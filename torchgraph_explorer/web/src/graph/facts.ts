/** What is said of modules, calls and tensors, as text. */

import type {Call, Module, ModuleGraph, Node, TensorInfo} from '../api/types';
import {twinNumber} from './keys';
import {callLabel, moduleNameOf, numbered, tensorNameOf} from './labels';
import {lettersOf, shapeText} from './shapes';

/** `float32` as `f32`, short enough for a table. */
export function dtypeText(dtype: string): string {
  return dtype.replace('bfloat', 'bf').replace('float', 'f').replace('uint', 'u').replace('int', 'i').replace('complex', 'c');
}

/** `kernel_size=(3, 3)`, or only the value of a positional fact. */
export function factText([key, value]: readonly [string, string]): string {
  return key === '' ? value : `${key}=${value}`;
}

export interface NodeText {
  /** The module's name within the call, with `#2` on its second call; or the tensor's. No other node there has that label. */
  label: string;
  /** Class of the module, or kind of the tensor. */
  detail: string;
  /** Of the first output. */
  shape: string;
}

/** What is written on a node. */
export function nodeText(graph: ModuleGraph, node: Node): NodeText {
  const shapeOf = (tensor: TensorInfo | null | undefined): string => (tensor ? shapeText(tensor, lettersOf(graph)) : '');
  if (node.call === null) return {label: placeholderName(graph, node), detail: node.kind, shape: shapeOf(node.tensor)};
  const call = graph.calls[node.call] as Call;
  const label = numbered(callLabel(graph, node.call, node.inside), call.call + 1);
  return {label, detail: (graph.modules[call.module] as Module).class_name, shape: shapeOf(call.outputs[0])};
}

/** The name of an input, output or attached tensor of the call whose inside it is in. */
export function placeholderName(graph: ModuleGraph, node: Node): string {
  const {kind, inside, tensor} = node;
  const path = tensor?.path ?? '';
  const name = kind === 'input' ? tensorNameOf(graph, inside === null ? '' : moduleNameOf(graph, inside), path) : path;
  return numbered(name, twinNumber(graph, node));
}

/** `ReLU`, and `ReLU #2` for the second call of one module. */
export function classText(module: Module, call: Call): string {
  return numbered(module.class_name, call.call + 1);
}

/** A module's name as one reads it: the model itself goes by its class. */
export function nameText(module: Module): string {
  return module.name === '' ? module.class_name : module.name;
}

/** Whether the gradient trains a module's parameters: all, some or none of them; empty without parameters. */
export function trainableText({total_params: total, trainable_params: trainable}: Module): string {
  if (total === 0) return '';
  if (trainable === 0) return 'frozen';
  return trainable === total ? 'trainable' : 'partly frozen';
}

/** `N×8×8 f32`. */
export function tensorLine(graph: ModuleGraph, tensor: TensorInfo): string {
  return `${shapeText(tensor, lettersOf(graph))} ${dtypeText(tensor.dtype)}`;
}

/** The calls from the model's own down to call `inside`. */
export function trail(graph: ModuleGraph, inside: number | null): number[] {
  const found: number[] = [];
  for (let call = inside; call !== null; call = graph.calls[call]?.parent ?? null) found.unshift(call);
  return found;
}

/** The calls that have an inside to open. */
export function openableCalls(graph: ModuleGraph): Set<number> {
  return new Set(graph.nodes.flatMap(({inside, kind}) => (inside !== null && (kind === 'call' || kind === 'attached') ? [inside] : [])));
}
