/** What is said of modules, calls and tensors, as text. */

import type {Call, Module, ModuleGraph, Node, TensorInfo} from '../api/types';
import {lastPart} from './outline';

/** `32×3×8×8`; a dimension that varied is `–`; of a zero-dimensional tensor `scalar`. */
export function shapeText(shape: readonly (number | null)[]): string {
  return shape.length === 0 ? 'scalar' : shape.map((size) => size ?? '–').join('×');
}

/** `float32` as `f32`, short enough for a table. */
export function dtypeText(dtype: string): string {
  return dtype.replace('bfloat', 'bf').replace('float', 'f').replace('uint', 'u').replace('int', 'i').replace('complex', 'c');
}

/** `kernel_size=(3, 3)`, or only the value of a positional fact. */
export function factText([key, value]: readonly [string, string]): string {
  return key === '' ? value : `${key}=${value}`;
}

export interface NodeText {
  /** Last part of the name, or the tensor's path. */
  label: string;
  /** Class, with `#2` on a second call. */
  detail: string;
  /** Of the first output. */
  shape: string;
}

/** What is written on a node. */
export function nodeText(graph: ModuleGraph, node: Node): NodeText {
  if (node.call === null) return tensorText(node);
  const call = graph.calls[node.call] as Call;
  const module = graph.modules[call.module] as Module;
  const label = module.name === '' ? module.class_name : lastPart(module.name);
  return {label, detail: classText(module, call), shape: call.outputs[0] ? shapeText(call.outputs[0].shape) : ''};
}

function tensorText({kind, tensor}: Node): NodeText {
  return {label: tensor?.path ?? '', detail: kind, shape: tensor ? shapeText(tensor.shape) : ''};
}

/** `ReLU`, and `ReLU #2` for the second call of one module. */
export function classText(module: Module, call: Call): string {
  return call.call === 0 ? module.class_name : `${module.class_name} #${call.call + 1}`;
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

/** `32×8×8 f32`. */
export function tensorLine({dtype, shape}: TensorInfo): string {
  return `${shapeText(shape)} ${dtypeText(dtype)}`;
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
