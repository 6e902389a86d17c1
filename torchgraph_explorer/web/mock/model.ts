/** Development only: synthetic models for the mock server. */
import type {Call, Edge, Module, ModuleGraph, Node, TensorInfo} from '../src/api/types';

interface Spec { cls: string; shape: number[]; repr?: [string, string][]; params?: number; steps?: Step[]; }
interface Step { id: string; child?: string; attach?: string; from: string[]; noGrad?: boolean; }

const tensor = (path: string, shape: number[], dtype = 'float32'): TensorInfo => ({path, shape: [null, ...shape], dtype, requires_grad: true});

export function build(specs: Map<string, Spec>): ModuleGraph {
  const names = [...specs.keys()];
  const modules: Module[] = names.map((name) => {
    const spec = specs.get(name)!;
    const total = names.filter((n) => n === name || n.startsWith(name === '' ? '' : `${name}.`)).reduce((s, n) => s + (specs.get(n)!.params ?? 0), 0);
    return {name, class_name: spec.cls, class_path: `torch.nn.modules.${spec.cls.toLowerCase()}.${spec.cls}`, extra_repr: spec.repr ?? [],
      params: spec.params ? [{path: 'weight', shape: [spec.shape[0] ?? 1, spec.params], dtype: 'float32', requires_grad: true}, {path: 'bias', shape: [spec.shape[0] ?? 1], dtype: 'float32', requires_grad: true}] : [],
      own_params: spec.params ?? 0, total_params: total, trainable_params: total};
  });
  const calls: Call[] = []; const nodes: Node[] = []; const edges: Edge[] = []; const counts = new Map<string, number>();
  const visit = (name: string, parent: number | null): number => {
    const spec = specs.get(name)!;
    const index = calls.length; const nth = counts.get(name) ?? 0; counts.set(name, nth + 1);
    calls.push({module: names.indexOf(name), call: nth, parent, inputs: [tensor('input[0]', spec.shape)], outputs: [tensor('output', spec.shape)]});
    nodes.push({kind: 'call', inside: parent, call: index, tensor: null});
    const me = nodes.length - 1;
    if (spec.steps) {
      const at = new Map<string, number>();
      nodes.push({kind: 'input', inside: index, call: null, tensor: tensor('input[0]', spec.shape)}); at.set('in', nodes.length - 1);
      for (const step of spec.steps) {
        if (step.child !== undefined) at.set(step.id, visit(name === '' ? step.child : `${name}.${step.child}`, index));
        else if (step.attach) { nodes.push({kind: 'attached', inside: index, call: null, tensor: tensor(step.attach, spec.shape)}); at.set(step.id, nodes.length - 1); }
        else { nodes.push({kind: 'output', inside: index, call: null, tensor: tensor('output', spec.shape)}); at.set(step.id, nodes.length - 1); }
        for (const from of step.from) edges.push({source: at.get(from)!, target: at.get(step.id)!, gradient: !step.noGrad});
      }
    }
    return me;
  };
  visit('', null);
  return {graph: 0, revision: 1, first_step: 0, modules, calls, nodes, edges};
}

const chain = (ids: string[]): Step[] => [...ids.map((id, i) => ({id, child: id, from: [i ? ids[i - 1]! : 'in']})), {id: 'out', from: [ids.at(-1)!]}];

function block(specs: Map<string, Spec>, name: string, c: number, hw: number): void {
  const shape = [c, hw, hw];
  specs.set(name, {cls: 'Block', shape, steps: [
    {id: 'conv1', child: 'conv1', from: ['in']}, {id: 'bn1', child: 'bn1', from: ['conv1']}, {id: 'relu', child: 'relu', from: ['bn1']},
    {id: 'conv2', child: 'conv2', from: ['relu']}, {id: 'bn2', child: 'bn2', from: ['conv2']}, {id: 'relu2', child: 'relu', from: ['bn2', 'in']}, {id: 'out', from: ['relu2']}]});
  for (const i of [1, 2]) {
    specs.set(`${name}.conv${i}`, {cls: 'Conv2d', shape, params: c * c * 9, repr: [['', `${c}, ${c}`], ['kernel_size', '(3, 3)'], ['stride', '(1, 1)'], ['padding', '(1, 1)'], ['bias', 'False']]});
    specs.set(`${name}.bn${i}`, {cls: 'BatchNorm2d', shape, params: 2 * c, repr: [['', String(c)], ['eps', '1e-05'], ['momentum', '0.1'], ['affine', 'True']]});
  }
  specs.set(`${name}.relu`, {cls: 'ReLU', shape, repr: [['inplace', 'True']]});
}

export function residual(): ModuleGraph {
  const s = new Map<string, Spec>();
  s.set('', {cls: 'DigitsResNet', shape: [1, 8, 8], steps: [
    {id: 'conv1', child: 'conv1', from: ['in']}, {id: 'bn1', child: 'bn1', from: ['conv1']}, {id: 'relu', child: 'relu', from: ['bn1']},
    {id: 'layer1', child: 'layer1', from: ['relu']}, {id: 'layer2', child: 'layer2', from: ['layer1']}, {id: 'layer3', child: 'layer3', from: ['layer2']},
    {id: 'features', attach: 'features', from: ['layer3']}, {id: 'avgpool', child: 'avgpool', from: ['layer3']}, {id: 'dropout', child: 'dropout', from: ['avgpool']}, {id: 'fc', child: 'fc', from: ['dropout']},
    {id: 'argmax', child: 'argmax', from: ['fc'], noGrad: true}, {id: 'out', from: ['fc', 'argmax']}]});
  s.set('conv1', {cls: 'Conv2d', shape: [32, 8, 8], params: 288, repr: [['', '1, 32'], ['kernel_size', '(3, 3)'], ['padding', '(1, 1)']]});
  s.set('bn1', {cls: 'BatchNorm2d', shape: [32, 8, 8], params: 64, repr: [['', '32'], ['eps', '1e-05']]});
  s.set('relu', {cls: 'ReLU', shape: [32, 8, 8], repr: [['inplace', 'True']]});
  block(s, 'layer1', 32, 8); block(s, 'layer2', 64, 4); block(s, 'layer3', 128, 2);
  s.set('avgpool', {cls: 'AdaptiveAvgPool2d', shape: [128, 1, 1], repr: [['output_size', '1']]});
  s.set('dropout', {cls: 'Dropout', shape: [128], repr: [['p', '0.1']]});
  s.set('fc', {cls: 'Linear', shape: [10], params: 1290, repr: [['in_features', '128'], ['out_features', '10'], ['bias', 'True']]});
  s.set('argmax', {cls: 'ArgMax', shape: [1]});
  return build(s);
}

export function big(): ModuleGraph {
  const s = new Map<string, Spec>();
  const n = 24; const d = 512;
  s.set('', {cls: 'BigTransformer', shape: [128, d], steps: chain(['embed', 'flat', 'blocks', 'norm', 'head'])});
  s.set('embed', {cls: 'Embedding', shape: [128, d], params: 32000 * d, repr: [['', `32000, ${d}`]]});
  const classes = ['Linear', 'LayerNorm', 'GELU', 'Dropout', 'Conv1d'];
  s.set('flat', {cls: 'Sequential', shape: [128, d], steps: [...chain([...Array(400).keys()].map(String)).slice(0, -1).map((step, i) => (i % 4 === 3 && i > 4 ? {...step, from: [...step.from, String(i - 4)]} : step)), {id: 'out', from: ['399']}]});
  for (let i = 0; i < 400; i++) { const cls = classes[i % 5]!; s.set(`flat.${i}`, {cls, shape: [128, d], params: i % 5 === 0 ? d * d : i % 5 === 1 ? 2 * d : 0, repr: i % 5 === 0 ? [['in_features', String(d)], ['out_features', String(d)]] : []}); }
  s.set('blocks', {cls: 'ModuleList', shape: [128, d], steps: chain([...Array(n).keys()].map(String))});
  for (let i = 0; i < n; i++) {
    const b = `blocks.${i}`;
    s.set(b, {cls: 'TransformerEncoderLayer', shape: [128, d], steps: [{id: 'ln1', child: 'ln1', from: ['in']}, {id: 'attn', child: 'attn', from: ['ln1']}, {id: 'ln2', child: 'ln2', from: ['attn', 'in']}, {id: 'mlp', child: 'mlp', from: ['ln2']}, {id: 'out', from: ['mlp', 'attn', 'in']}]});
    s.set(`${b}.ln1`, {cls: 'LayerNorm', shape: [128, d], params: 2 * d});
    s.set(`${b}.attn`, {cls: 'MultiheadAttention', shape: [128, d], params: 4 * d * d, steps: chain(['qkv', 'softmax', 'proj'])});
    s.set(`${b}.attn.qkv`, {cls: 'Linear', shape: [128, 3 * d], params: 3 * d * d}); s.set(`${b}.attn.softmax`, {cls: 'Softmax', shape: [8, 128, 128]}); s.set(`${b}.attn.proj`, {cls: 'Linear', shape: [128, d], params: d * d});
    s.set(`${b}.ln2`, {cls: 'LayerNorm', shape: [128, d], params: 2 * d});
    s.set(`${b}.mlp`, {cls: 'Sequential', shape: [128, d], steps: chain(['0', '1', '2'])});
    s.set(`${b}.mlp.0`, {cls: 'Linear', shape: [128, 4 * d], params: 4 * d * d}); s.set(`${b}.mlp.1`, {cls: 'GELU', shape: [128, 4 * d]}); s.set(`${b}.mlp.2`, {cls: 'Linear', shape: [128, d], params: 4 * d * d});
  }
  s.set('norm', {cls: 'LayerNorm', shape: [128, d], params: 2 * d});
  s.set('head', {cls: 'Linear', shape: [128, 32000], params: 32000 * d});
  return build(s);
}
