/** The facts of what is selected, or of the call that is open. */

import './Details.css';

import type {ComponentChildren} from 'preact';
import {lostText} from '../../history';
import type {Call, Module, ModuleGraph, TensorInfo} from '../../api/types';
import {classText, dtypeText, nameText, placeholderName, trainableText} from '../../graph/facts';
import {bySignature, seriesName, tensorName} from '../../graph/labels';
import {nodeIndex, openable, statisticsOf} from '../pane/scene';
import {lettersOf, shapeText, variedText} from '../../graph/shapes';
import {countsText, isAll} from '../../graph/nodeState';
import {callKey, parseKey} from '../../graph/keys';
import type {NodeKey} from '../../graph/keys';
import {formatCount, formatNumber, stepName} from '../../numberText';
import {nonfinite} from '../../statistics';
import type {Row} from '../../statistics';
import {isAlone, openCall} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import type {TensorSeries} from '../../model/series';
import {Icon, IconButton} from '../controls/Icon';
import {EdgeFlows} from './EdgeFlows';
import {togglePin} from '../pinning';
import {hasKept} from '../tensors/store';
import {ValuesLink} from '../tensors/ValuesLink';

export function Details() {
  const graph = shown.graph.value;
  if (!graph) return <div class="details" />;
  const inside = shown.inside.value;
  const open = inside ?? (isAlone.value ? graph.calls.findIndex(({parent}) => parent === null) : null);
  const key = choices.selected.value ?? (open === null ? null : callKey(graph, open));
  if (key === null) return <div class="details dim pad">Select a node to see its facts.</div>;
  const call = shown.callIndex.value.get(key);
  if (call !== undefined) return <CallDetails graph={graph} index={call} nodeKey={key} />;
  const node = graph.nodes[nodeIndex.value.get(key) ?? -1];
  if (!node?.tensor) return <UncalledDetails graph={graph} nodeKey={key} />;
  return (
    <section class="details" aria-label="Facts">
      <Head title={placeholderName(graph, node)} subtitle={node.kind === 'attached' ? 'attached tensor' : `${node.kind} of the open call`} nodeKey={key} />
      <Tensors title="Tensor" graph={graph} tensors={[{...node.tensor, path: placeholderName(graph, node)}]} />
      <Statistics nodeKey={key} />
      <EdgeFlows graph={graph} nodeKey={key} />
    </section>
  );
}

/** Of a module that the graph on show does not call, what is known without a call. */
function UncalledDetails({graph, nodeKey}: {graph: ModuleGraph; nodeKey: NodeKey}) {
  const name = parseKey(nodeKey)?.module ?? nodeKey;
  const module = graph.modules.find((one) => one.name === name);
  const step = shown.step.value;
  if (module === undefined) return <div class="details dim pad">{name} is not in this graph.</div>;
  return (
    <section class="details" aria-label="Facts">
      <Head title={nameText(module)} subtitle={module.class_name} nodeKey={nodeKey} />
      <p class="dim">It is not called{step === null ? '' : ` at ${stepName(step)}`}.</p>
      <Rows rows={moduleRows(module, null)} />
      <Tensors title="Parameters" graph={graph} tensors={module.params} />
      <Statistics nodeKey={nodeKey} />
    </section>
  );
}

function CallDetails({graph, index, nodeKey}: {graph: ModuleGraph; index: number; nodeKey: NodeKey}) {
  const call = graph.calls[index] as Call;
  const module = graph.modules[call.module] as Module;
  const canOpen = openable.value.has(index) && index !== shown.inside.value;
  return (
    <section class="details" aria-label="Facts">
      <Head title={nameText(module)} subtitle={classText(module, call)} nodeKey={nodeKey} />
      {canOpen && (
        <button type="button" class="button" onClick={() => openCall(index)}>
          Open inside <Icon name="chevron" />
        </button>
      )}
      <Rows rows={moduleRows(module, call)} />
      <Tensors title="Inputs" graph={graph} tensors={bySignature(call.inputs, module.forward_parameters ?? [])} parameters={module.forward_parameters} />
      <Tensors title="Outputs" graph={graph} tensors={call.outputs} />
      <Tensors title="Parameters" graph={graph} tensors={module.params} />
      <Statistics nodeKey={nodeKey} />
      <EdgeFlows graph={graph} nodeKey={nodeKey} />
    </section>
  );
}

function Head({title, subtitle, nodeKey}: {title: string; subtitle: string; nodeKey: NodeKey}) {
  const [isPinned, isKept] = [choices.isPinned(nodeKey), choices.isKept(nodeKey)];
  return (
    <header class="details-head">
      <div>
        <h2 title={title}>{title}</h2>
        <div class="dim">{subtitle}</div>
      </div>
      <IconButton
        icon="pin"
        label={isKept ? 'Unpin (P)' : isPinned ? 'Keep its panel (P)' : 'Pin: show its histograms (P)'}
        isPressed={isKept}
        onPress={() => togglePin(nodeKey)}
      />
    </header>
  );
}

function moduleRows(module: Module, call: Call | null): [string, string][] {
  const params = module.total_params;
  const own = module.own_params === params ? '' : ` (${formatCount(module.own_params)} own)`;
  return [
    ['Class', module.class_path],
    ...(call === null ? [] : ([['Call', `${call.call + 1}`]] as [string, string][])),
    ['Parameters', params === 0 ? 'none' : `${formatCount(params)}${own}, ${trainableText(module)}`],
    ...module.extra_repr.filter(([key]) => key !== ''),
    ...namelessRow(module),
  ];
}

/** What the module says of itself without a name, as it says it. */
function namelessRow({extra_repr}: Module): [string, string][] {
  const values = extra_repr.flatMap(([key, value]) => (key === '' ? [value] : []));
  return values.length === 0 ? [] : [['extra_repr', values.join(', ')]];
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

interface TensorsProps {
  title: string;
  graph: ModuleGraph;
  tensors: readonly TensorInfo[];
  /** Of the `forward` that they are arguments of. */
  parameters?: readonly string[] | undefined;
}

function Tensors({title, graph, tensors, parameters = []}: TensorsProps) {
  if (tensors.length === 0) return null;
  const letters = lettersOf(graph);
  return (
    <table class="fact-table">
      <caption>{title}</caption>
      <tbody>
        {tensors.map((tensor) => (
          <tr key={tensor.path}>
            <th scope="row" title={tensorName(tensor.path, parameters)}>
              {tensorName(tensor.path, parameters)}
            </th>
            <td title={variedText(tensor, letters) || undefined}>{shapeText(tensor, letters)}</td>
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
  const {input, output, params, attached} = shown.seriesOfNode(nodeKey);
  const groups = Object.entries({input, output, parameter: params, attached});
  const step = shown.step.value;
  if (groups.every(([, tensors]) => tensors.length === 0) || step === null) return null;
  return (
    <table class={`fact-table statistics${hasKept.value ? ' has-values' : ''}`}>
      <caption>At {stepName(step)}</caption>
      <thead>
        <tr>
          <th scope="col">tensor</th>
          <th scope="col">mean</th>
          <th scope="col">std</th>
          <th scope="col" title="Mean of the per-sample gradient norms; of a parameter, the norm of its gradient">
            |grad|
          </th>
          {hasKept.value && (
            <th scope="col" class="values-cell">
              <span class="sr-only">values</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {groups.map(([role, tensors]) =>
          tensors.map((tensor) => <StatisticsRow key={`${role} ${tensor.path}`} tensor={tensor} role={role} />),
        )}
      </tbody>
    </table>
  );
}

function StatisticsRow({tensor: {path, value, gradient}, role}: {tensor: TensorSeries; role: string}) {
  const series = value ?? gradient;
  const name = series ? seriesName(shown.graph.value, series) : path;
  const values = value && statisticsOf(value.series);
  const gradients = gradient && statisticsOf(gradient.series);
  const odd = [values, gradients].flatMap((row) => (row && nonfinite(row) > 0 ? [row] : []));
  return (
    <tr>
      <th scope="row" title={`${role} ${name}`}>
        {name}
        {odd.length > 0 && <b class="odd" title={odd.map(countsText).join('; ')}> !</b>}
      </th>
      <Cell row={values} of={({mean}) => mean} />
      <Cell row={values} of={({std}) => std} />
      <Cell row={gradients} of={(row) => (gradient?.kind === 'grad' ? row.l2_norm : row.mean)} />
      {hasKept.value && <td class="values-cell">{series && <ValuesLink series={series} isShort />}</td>}
    </tr>
  );
}

/** A statistic, or why it is missing: not recorded, no elements, or no finite element. */
function Cell({row, of}: {row: Row | null; of: (row: Row) => number}) {
  if (!row) return <td class="dim" title="not recorded at this step">–</td>;
  if (isAll(row)) return <td class="odd" title={lostText(row)}>{row.nan > 0 ? 'NaN' : '∞'}</td>;
  if (row.count === 0) return <td class="dim" title="no elements">empty</td>;
  const text = formatNumber(of(row));
  return <td title={text}>{text}</td>;
}
