/** What the graph pane says while there is nothing to draw. */

import type {ComponentChildren} from 'preact';
import {scene} from '../graph/scene';
import * as store from '../state/store';

export function GraphNotice() {
  if (scene.value) return null;
  const {title, text} = reason();
  return <Notice title={title}>{text}</Notice>;
}

export function Notice({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="notice" role="status">
      <b>{title}</b>
      {children && <div>{children}</div>}
    </div>
  );
}

/** Why there is no graph, and what will bring one. */
function reason(): {title: string; text: ComponentChildren} {
  const runs = store.runs.value;
  const data = store.data.value;
  if (runs === null) {
    const gone = store.connection.value === 'retrying';
    return gone
      ? {title: 'The server does not answer', text: 'The viewer goes on by itself as soon as it does.'}
      : {title: 'Loading…', text: ''};
  }
  if (runs.length === 0) return {title: `No run in the folder ${store.logdir.value} yet`, text: <NoRunHelp />};
  const run = runs.find((one) => one.run === store.run.value);
  if (!run) return {title: `There is no run ${store.run.value}`, text: 'Choose another one above.'};
  if (run.error) return {title: 'This run cannot be read in full', text: run.error};
  if (run.models.length === 0) return {title: 'No model in this run yet', text: 'It appears when watch() has been called.'};
  if (!data) return {title: 'Loading…', text: ''};
  if (data.steps.length === 0) return {title: 'No step recorded yet', text: waitText(data.session?.log_freq)};
  if (data.graphs.length === 0) return {title: 'No graph yet', text: 'The graph is traced in the first recorded step; this run has none so far.'};
  return {title: 'Loading the graph…', text: ''};
}

function NoRunHelp() {
  return (
    <>
      Add <code>watch(model)</code> to your training script, or try <code>torchgraph demo</code>. A new run appears here by
      itself.
    </>
  );
}

function waitText(logFreq: string | undefined): string {
  const first = 'The graph and the first histograms appear when the first recorded step has ended.';
  if (logFreq === undefined) return first;
  if (logFreq === '1') return `${first} Every step is recorded.`;
  return `${first} ${/^\d+$/.test(logFreq) ? `One step in ${logFreq} is recorded.` : `Recorded: ${logFreq}.`}`;
}
