/** A card beside the node under the pointer: its shapes and what the module says of itself. */

import './Tooltip.css';

import type {Edge, ModuleGraph, TensorInfo} from '../../api/types';
import {edgeName, endsOf, flowText} from '../../graph/edges';
import {classText, factText, nameText, placeholderName, tensorLine} from '../../graph/facts';
import {bySignature, tensorName} from '../../graph/labels';
import {markWords} from '../../graph/nonfinite';
import {changeOf} from '../comparison/graph';
import {nodeIndex, nodeMeasure, nodeStates} from './scene';
import {lettersOf, variedText} from '../../graph/shapes';
import {stateText} from '../../graph/nodeState';
import {marks} from './marks';
import * as shown from '../state/shown';
import {dragged} from './drag';
import {edgesOnShow, flowAt} from './flows';
import {hovered} from './hover';
import type {Hovered} from './hover';
import {titleOf} from '../../findings/names';
import {badgeText} from '../../findings/places';
import {findingMarksShown} from '../findings/found';
import {SeverityIcon} from '../findings/SeverityIcon';
import {worst} from '../../findings/roots';

const WIDTH = 280;

export function Tooltip() {
  const now = hovered.value;
  const graph = shown.graph.value;
  const index = now ? nodeIndex.value.get(now.key) : undefined;
  const node = index === undefined ? undefined : graph?.nodes[index];
  const edge = now ? edgesOnShow.value.get(now.key) : undefined;
  if (now && graph && edge && !dragged.value) return <EdgeTooltip hovered={now} graph={graph} edge={edge} />;
  if (!now || !graph || !node || dragged.value) return null;
  const {x, ...vertically} = placeBeside(now.box);
  const call = node.call === null ? undefined : graph.calls[node.call];
  const module = call && graph.modules[call.module];
  return (
    <div class="tooltip" role="tooltip" style={{left: `${x}px`, maxWidth: `${WIDTH}px`, ...vertically}}>
      {call && module ? (
        <>
          <b>{nameText(module)}</b>
          <div class="dim">{classText(module, call)}</div>
          <Tensors label="in" graph={graph} tensors={bySignature(call.inputs, module.forward_parameters ?? [])} parameters={module.forward_parameters} />
          <Tensors label="out" graph={graph} tensors={call.outputs} />
          <Varied graph={graph} tensors={[...call.inputs, ...call.outputs]} />
          {module.extra_repr.length > 0 && <div class="mono facts-line">{module.extra_repr.map(factText).join(', ')}</div>}
        </>
      ) : (
        <>
          <b>{placeholderName(graph, node)}</b>
          <div class="dim">{node.kind === 'attached' ? 'attached tensor' : `${node.kind} of this call`}</div>
          {node.tensor && <div class="mono">{tensorLine(graph, node.tensor)}</div>}
          {node.tensor && <Varied graph={graph} tensors={[node.tensor]} />}
        </>
      )}
      <MeasureLine node={index as number} />
      <ChangeLine nodeKey={now.key} />
      <MarkLine node={index as number} />
      <FindingLines nodeKey={now.key} />
    </div>
  );
}

/** What comes back along an edge. */
function EdgeTooltip({hovered: {key, box}, graph, edge}: {hovered: Hovered; graph: ModuleGraph; edge: Edge}) {
  const {x, ...vertically} = placeBeside(box);
  const ends = endsOf(key);
  return (
    <div class="tooltip" role="tooltip" style={{left: `${x}px`, maxWidth: `${WIDTH}px`, ...vertically}}>
      <b>{ends && edgeName(graph, ends)}</b>
      <div class="dim">{edge.gradient ? 'gradient along the edge, norm' : 'data, no gradient'}</div>
      {edge.gradient && (
        <div class="tooltip-measure">
          At this step: <b>{flowText(flowAt(edge))}</b>
        </div>
      )}
      {flowAt(edge).kind !== 'missing' && <div class="dim">Click for its gradient over time.</div>}
    </div>
  );
}

interface TensorsProps {
  label: string;
  graph: ModuleGraph;
  tensors: readonly TensorInfo[];
  /** Of the `forward` that they are arguments of. */
  parameters?: readonly string[] | undefined;
}

function Tensors({label, graph, tensors, parameters = []}: TensorsProps) {
  return (
    <>
      {tensors.slice(0, 4).map((tensor) => (
        <div key={tensor.path} class="tooltip-tensor">
          <span class="dim">{label}</span> {shownName(tensorName(tensor.path, parameters))}
          <span class="mono">{tensorLine(graph, tensor)}</span>
        </div>
      ))}
      {tensors.length > 4 && <div class="dim">and {tensors.length - 4} more</div>}
    </>
  );
}

interface Position {
  x: number;
  top?: string;
  bottom?: string;
}

/** On the right of a node, else on its left, else, where neither has room, below or above it. */
function placeBeside({left, right, top, bottom}: DOMRect): Position {
  const {innerWidth, innerHeight} = window;
  const beside = `${Math.max(8, Math.min(top, innerHeight - 180))}px`;
  if (right + WIDTH + 16 <= innerWidth) return {x: right + 10, top: beside};
  if (left - WIDTH - 18 >= 0) return {x: left - WIDTH - 10, top: beside};
  const x = Math.max(8, Math.min(left, innerWidth - WIDTH - 8));
  return bottom < innerHeight / 2 ? {x, top: `${bottom + 8}px`} : {x, bottom: `${innerHeight - top + 8}px`};
}

/** An output that is all that was returned needs no name beside "out". */
function shownName(name: string): string {
  return name === 'output' ? '' : `${name} `;
}

/** What the letters in the shapes stand for. */
function Varied({graph, tensors}: {graph: ModuleGraph; tensors: readonly TensorInfo[]}) {
  const texts = new Set(tensors.flatMap((tensor) => variedText(tensor, lettersOf(graph)).split('; ')).filter(Boolean));
  return texts.size === 0 ? null : <div class="dim">{[...texts].join('; ')}</div>;
}

function MeasureLine({node}: {node: number}) {
  const measure = nodeMeasure.value;
  if (!measure) return null;
  return (
    <div class="tooltip-measure">
      {measure.label}: <b>{stateText(nodeStates.value.get(node), measure)}</b>
    </div>
  );
}

const MOST_FINDINGS = 5;

/** The findings of the node, and how many there are inside. */
function FindingLines({nodeKey}: {nodeKey: string}) {
  const mark = findingMarksShown.value.calls.get(nodeKey);
  if (!mark) return null;
  return (
    <div class="tooltip-measure">
      {mark.own.slice(0, MOST_FINDINGS).map((finding) => (
        <div key={finding.id} class="tooltip-finding">
          <SeverityIcon severity={finding.severity} /> {titleOf(finding.kind)}
        </div>
      ))}
      {mark.inside.length > 0 && (
        <div class="tooltip-finding">
          <SeverityIcon severity={worst(mark.inside)} /> {badgeText({own: [], inside: mark.inside})}
        </div>
      )}
    </div>
  );
}

/** How it differs from the run that the graph is compared with. */
function ChangeLine({nodeKey}: {nodeKey: string}) {
  const change = changeOf(nodeKey);
  return change && <div class="tooltip-measure">{change.words}</div>;
}

function MarkLine({node}: {node: number}) {
  const mark = marks.value.nodes.get(node);
  return mark ? <div class="tooltip-measure is-bad">{markWords(mark)}</div> : null;
}
