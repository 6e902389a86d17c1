/** The gradient along each edge of the selected node, at the current step. */

import {stepName} from '../../numberText';
import type {Edge, ModuleGraph} from '../../api/types';
import {edgeName, endsOf, flowText} from '../../graph/edges';
import type {NodeKey} from '../../graph/keys';
import {areFlowsKnown, edgesOnShow, flowAt} from '../pane/flows';
import {nodeIndex} from '../pane/scene';
import {lookAtNode} from '../pinning';
import * as shown from '../state/shown';

/** Each row's name shows the edge's series. */
export function EdgeFlows({graph, nodeKey}: {graph: ModuleGraph; nodeKey: NodeKey}) {
  const node = nodeIndex.value.get(nodeKey);
  const touches = ({source, target, gradient}: Edge): boolean => gradient && (source === node || target === node);
  const found = [...edgesOnShow.value].filter(([, edge]) => touches(edge));
  if (found.length === 0 || !areFlowsKnown.value) return null;
  return (
    <table class="fact-table edge-flows">
      <caption>Gradient along edges{shown.step.value === null ? '' : ` at ${stepName(shown.step.value)}`}</caption>
      <tbody>
        {found.map(([key, edge]) => (
          <EdgeRow key={key} graph={graph} edgeKey={key} edge={edge} />
        ))}
      </tbody>
    </table>
  );
}

function EdgeRow({graph, edgeKey, edge}: {graph: ModuleGraph; edgeKey: NodeKey; edge: Edge}) {
  const ends = endsOf(edgeKey);
  const name = ends === null ? edgeKey : edgeName(graph, ends);
  const flow = flowAt(edge);
  return (
    <tr>
      <th scope="row" title={name}>
        {flow.kind === 'missing' ? (
          name
        ) : (
          <button type="button" title="Show it over time" onClick={() => lookAtNode(edgeKey)}>
            {name}
          </button>
        )}
      </th>
      <td class={flow.kind === 'value' ? undefined : flow.kind === 'nonfinite' ? 'odd' : 'dim'}>{flowText(flow)}</td>
    </tr>
  );
}
