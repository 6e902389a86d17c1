/** A card beside the node under the pointer: its shapes and what the module says of itself. */

import type {TensorInfo} from '../api/types';
import {classText, factText, nameText, tensorLine} from '../graph/facts';
import {nodeIndex, nodeMeasure, nodeValues} from '../graph/scene';
import {formatNumber} from '../state/measures';
import * as store from '../state/store';
import {dragged} from './drag';
import {hovered} from './hover';

const WIDTH = 280;

export function Tooltip() {
  const now = hovered.value;
  const graph = store.graph.value;
  const index = now ? nodeIndex.value.get(now.key) : undefined;
  const node = index === undefined ? undefined : graph?.nodes[index];
  if (!now || !graph || !node || dragged.value) return null;
  const isLeft = now.box.right + WIDTH + 16 > window.innerWidth;
  const x = isLeft ? Math.max(8, now.box.left - WIDTH - 10) : now.box.right + 10;
  const y = Math.max(8, Math.min(now.box.top, window.innerHeight - 180));
  const call = node.call === null ? undefined : graph.calls[node.call];
  const module = call && graph.modules[call.module];
  return (
    <div class="tooltip" role="tooltip" style={{left: `${x}px`, top: `${y}px`, width: `${WIDTH}px`}}>
      {call && module ? (
        <>
          <b>{nameText(module)}</b>
          <div class="dim">{classText(module, call)}</div>
          <Tensors label="in" tensors={call.inputs} />
          <Tensors label="out" tensors={call.outputs} />
          {module.extra_repr.length > 0 && <div class="mono facts-line">{module.extra_repr.map(factText).join(', ')}</div>}
        </>
      ) : (
        <>
          <b>{node.tensor?.path}</b>
          <div class="dim">{node.kind === 'attached' ? 'attached tensor' : `${node.kind} of this call`}</div>
          {node.tensor && <div class="mono">{tensorLine(node.tensor)}</div>}
        </>
      )}
      <MeasureLine node={index as number} />
    </div>
  );
}

function Tensors({label, tensors}: {label: string; tensors: readonly TensorInfo[]}) {
  return (
    <>
      {tensors.slice(0, 4).map((tensor) => (
        <div key={tensor.path} class="tooltip-tensor">
          <span class="dim">{label}</span> <span class="mono">{tensorLine(tensor)}</span>
        </div>
      ))}
      {tensors.length > 4 && <div class="dim">and {tensors.length - 4} more</div>}
    </>
  );
}

function MeasureLine({node}: {node: number}) {
  const measure = nodeMeasure.value;
  if (!measure) return null;
  const value = nodeValues.value.get(node);
  return (
    <div class="tooltip-measure">
      {measure.label}: <b>{value === undefined ? 'no data' : formatNumber(value)}</b>
    </div>
  );
}
