/** The graph with its tools: where one is, what colours it, zoom, legend. */

import {Fragment} from 'preact';
import {nameText, trail} from '../graph/facts';
import {layoutProblem} from '../graph/scene';
import {requestProblem} from '../state/follow';
import {canLeadOut, isAlone, leadOut, openCall} from '../state/navigate';
import * as store from '../state/store';
import {Canvas} from './Canvas';
import {IconButton} from './Icon';
import {Legend} from './Legend';
import {camera, fit} from './look';
import {GraphNotice} from './Notice';
import {isSearching} from './Search';
import {Select} from './Select';

export function GraphPane() {
  const problem = layoutProblem.value ?? requestProblem.value;
  return (
    <section class="graph-pane" aria-label="Graph">
      <div class="pane-bar">
        <IconButton icon="out" label="Lead out (Backspace)" onPress={leadOut} disabled={!canLeadOut.value} />
        <Breadcrumb />
        <GraphChooser />
        <IconButton icon="search" label="Search (/)" onPress={() => (isSearching.value = true)} />
      </div>
      <div class="canvas-box">
        <Canvas />
        <GraphNotice />
        {problem && <div class="strip-notice">{problem}</div>}
        <div class="zoom-buttons">
          <IconButton icon="plus" label="Zoom in (+)" onPress={() => camera.value?.zoomBy(1.3)} />
          <IconButton icon="minus" label="Zoom out (−)" onPress={() => camera.value?.zoomBy(1 / 1.3)} />
          <IconButton icon="fit" label="Fit (F)" onPress={fit} />
        </div>
      </div>
      <Legend />
    </section>
  );
}

/** For a model that is not called in the same way at every step. */
function GraphChooser() {
  const graphs = store.data.value?.graphs ?? [];
  if (graphs.length < 2) return null;
  const options = graphs.map(({graph, first_step}) => ({value: String(graph), label: `From step ${first_step}`}));
  const automatic = {value: '', label: `Automatic (from step ${store.automaticGraph.value?.first_step ?? 0})`};
  return (
    <Select
      label="Graph"
      value={store.graphChoice.value === null ? '' : String(store.graphChoice.value)}
      options={[automatic, ...options]}
      onChoose={(value) => (store.graphChoice.value = value === '' ? null : Number(value))}
    />
  );
}

function Breadcrumb() {
  const graph = store.graph.value;
  if (!graph) return <nav class="breadcrumb" aria-label="Where you are" />;
  const calls = trail(graph, store.inside.value);
  return (
    <nav class="breadcrumb" aria-label="Where you are">
      {!isAlone.value && <Crumb label="Calls of the model" isHere={calls.length === 0} onPress={() => openCall(null)} />}
      {calls.map((index, depth) => {
        const call = graph.calls[index];
        const module = call && graph.modules[call.module];
        if (!call || !module) return null;
        const name = nameText(module);
        const outer = calls[depth - 1];
        const prefix = outer === undefined ? '' : `${graph.modules[graph.calls[outer]?.module ?? 0]?.name ?? ''}.`;
        const short = prefix !== '.' && name.startsWith(prefix) ? name.slice(prefix.length) : name;
        const label = call.call === 0 ? short : `${short} #${call.call + 1}`;
        return (
          <Fragment key={index}>
            {(depth > 0 || !isAlone.value) && (
              <span class="crumb-slash" aria-hidden="true">
                /
              </span>
            )}
            <Crumb label={label} isHere={depth === calls.length - 1} onPress={() => openCall(index)} />
          </Fragment>
        );
      })}
    </nav>
  );
}

function Crumb({label, isHere, onPress}: {label: string; isHere: boolean; onPress: () => void}) {
  return (
    <button type="button" class="crumb" aria-current={isHere ? 'location' : undefined} title={label} onClick={onPress}>
      {label}
    </button>
  );
}
