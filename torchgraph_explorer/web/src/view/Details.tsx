/** The facts of what is selected, or of the call that is open. */

import type {ComponentChildren} from 'preact';
import type {Call, Module, ModuleGraph, TensorInfo} from '../api/types';
import {classText, dtypeText, nameText, shapeText, trainableText} from '../graph/facts';
import {nodeIndex, openable, statisticsOf} from '../graph/scene';
import {callKey} from '../state/keys';
import type {NodeKey} from '../state/keys';
import {formatCount, formatNumber, nonfinite} from '../state/measures';
import {openCall, togglePin} from '../state/navigate';
import * as store from '../state/store';
import type {TensorSeries} from '../state/store';
import {Icon, IconButton} from './Icon';

export function Details() {
  const graph = store.graph.value;
  if (!graph) return <div class="details" />;
  const inside = store.inside.value;
  const key = store.selected.value ?? (inside === null ? null : callKey(graph, inside));
  if (key === null) return <div class="details dim pad">Select a node to see its facts.</div>;
  const call = store.callIndex.value.get(key);
  if (call !== undefined) return <CallDetails graph={graph} index={call} nodeKey={key} />;
  const node = graph.nodes[nodeIndex.value.get(key) ?? -1];
  if (!node?.tensor) return <div class="details dim pad">{key} is not in this graph.</div>;
  return (
    <section class="details" aria-label="Facts">
      <Head title={node.tensor.path} subtitle={node.kind === 'attached' ? 'attached tensor' : `${node.kind} of the open call`} nodeKey={key} />
      <Tensors title="Tensor" tensors={[node.tensor]} />
      <Statistics nodeKey={key} />
    </section>
  );
}

function CallDetails({graph, index, nodeKey}: {graph: ModuleGraph; index: number; nodeKey: NodeKey}) {
  const call = graph.calls[index] as Call;
  const module = graph.modules[call.module] as Module;
  const canOpen = openable.value.has(index) && index !== store.inside.value;
  return (
    <section class="details" aria-label="Facts">
      <Head title={nameText(module)} subtitle={classText(module, call)} nodeKey={nodeKey} />
      {canOpen && (
        <button type="button" class="button" onClick={() => openCall(index)}>
          Open inside <Icon name="chevron" />
        </button>
      )}
      <Rows rows={moduleRows(module, call)} />
      <Tensors title="Inputs" tensors={call.inputs} />
      <Tensors title="Outputs" tensors={call.outputs} />
      <Tensors title="Parameters" tensors={module.params} />
      <Statistics nodeKey={nodeKey} />
    </section>
  );
}

function Head({title, subtitle, nodeKey}: {title: string; subtitle: string; nodeKey: NodeKey}) {
  const isPinned = store.isPinned(nodeKey);
  return (
    <header class="details-head">
      <div>
        <h2 title={title}>{title}</h2>
        <div class="dim">{subtitle}</div>
      </div>
      <IconButton
        icon="pin"
        label={isPinned ? 'Unpin (P)' : 'Pin: show its histograms (P)'}
        isPressed={isPinned}
        onPress={() => togglePin(nodeKey)}
      />
    </header>
  );
}

function moduleRows(module: Module, call: Call): [string, string][] {
  const params = module.total_params;
  const own = module.own_params === params ? '' : ` (${formatCount(module.own_params)} own)`;
  return [
    ['Class', module.class_path],
    ['Call', `${call.call + 1}`],
    ['Parameters', params === 0 ? 'none' : `${formatCount(params)}${own}, ${trainableText(module)}`],
    ...module.extra_repr.map(([key, value], i): [string, string] => [key || `argument ${i + 1}`, value]),
  ];
}

function Rows({rows}: {rows: readonly [string, string][]}) {
  return (
    <dl class="fact-rows">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={value}>{breakable(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A dotted name, which may go on in the next line after each dot. */
function breakable(text: string): ComponentChildren {
  return text.split(/(?<=\.)(?=[A-Za-z_])/).flatMap((part, i) => (i === 0 ? [part] : [<wbr key={i} />, part]));
}

function Tensors({title, tensors}: {title: string; tensors: readonly TensorInfo[]}) {
  if (tensors.length === 0) return null;
  return (
    <table class="fact-table">
      <caption>{title}</caption>
      <tbody>
        {tensors.map((tensor) => (
          <tr key={tensor.path}>
            <th scope="row" title={tensor.path}>{tensor.path}</th>
            <td>{shapeText(tensor.shape)}</td>
            <td class="dim" title={tensor.requires_grad ? tensor.dtype : `${tensor.dtype}, no gradient`}>
              {dtypeText(tensor.dtype)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Mean, standard deviation and what is odd, of each tensor of the node at the current step. */
function Statistics({nodeKey}: {nodeKey: NodeKey}) {
  const {input, output, params, attached} = store.seriesOfNode(nodeKey);
  const tensors = [...input, ...output, ...params, ...attached];
  const step = store.data.value?.steps[store.currentFrame.value ?? -1];
  if (tensors.length === 0 || step === undefined) return null;
  return (
    <table class="fact-table statistics">
      <caption>At step {step}</caption>
      <thead>
        <tr>
          <th scope="col">tensor</th>
          <th scope="col">mean</th>
          <th scope="col">std</th>
          <th scope="col" title="Mean of the per-sample gradient norms; of a parameter, the norm of its gradient">
            |grad|
          </th>
        </tr>
      </thead>
      <tbody>
        {tensors.map((tensor) => (
          <StatisticsRow key={tensor.path + (tensor.value?.role ?? '')} tensor={tensor} />
        ))}
      </tbody>
    </table>
  );
}

function StatisticsRow({tensor: {path, value, gradient}}: {tensor: TensorSeries}) {
  const values = value && statisticsOf(value.series);
  const gradients = gradient && statisticsOf(gradient.series);
  const norm = gradients && (gradient.kind === 'grad' ? gradients.l2_norm : gradients.mean);
  const odd = (values ? nonfinite(values) : 0) + (gradients ? nonfinite(gradients) : 0);
  return (
    <tr>
      <th scope="row" title={path}>
        {path}
        {odd > 0 && <b class="odd" title={`${odd} NaN or infinite elements`}> !</b>}
      </th>
      <td>{values ? formatNumber(values.mean) : '–'}</td>
      <td>{values ? formatNumber(values.std) : '–'}</td>
      <td>{norm === null ? '–' : formatNumber(norm)}</td>
    </tr>
  );
}
