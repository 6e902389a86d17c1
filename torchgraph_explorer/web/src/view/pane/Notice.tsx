/** What the graph pane says while there is nothing to draw. */

import './Notice.css';

import type {ComponentChildren} from 'preact';
import {notesOf} from '../../model/data';
import type {ModelData} from '../../model/data';
import {hostIsDark} from '../../host/tensorboard';
import {scene} from './scene';
import * as choices from '../state/choices';
import * as server from '../state/runs';
import * as shown from '../state/shown';

export function GraphNotice() {
  if (scene.value) return null;
  const {title, text} = reason();
  return <Notice title={title}>{text}</Notice>;
}

function Notice({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="notice" role="status">
      <b>{title}</b>
      {children && <div>{children}</div>}
    </div>
  );
}

interface Reason {
  title: string;
  text: ComponentChildren;
}

/** Why there is no graph, and what will bring one. */
function reason(): Reason {
  const runs = server.runs.value;
  const data = shown.data.value;
  if (runs === null) return delay();
  if (runs.length === 0) return {title: `No run in the folder ${server.logdir.value} yet`, text: <NoRunHelp />};
  const run = runs.find((one) => one.run === choices.run.value);
  if (!run) return {title: `There is no run ${choices.run.value}`, text: 'Choose another one above.'};
  if (run.error) return {title: `This run cannot be read${run.models.length > 0 ? ' in full' : ''}`, text: run.error};
  if (run.models.length === 0) return {title: 'No model in this run yet', text: 'It appears when watch() has been called.'};
  if (!data) return delay();
  if (data.steps.length === 0) return {title: shown.isOver.value ? 'No step was recorded' : 'No step recorded yet', text: <NoStepHelp data={data} />};
  if (data.graphs.length === 0 && shown.isOver.value) return {title: 'The graph is missing', text: 'The record has steps and no graph: it is damaged, or a part of it is gone.'};
  if (data.graphs.length === 0) return {title: 'No graph yet', text: 'The graph is traced in the first recorded step; this run has none so far.'};
  return {title: 'Loading the graph…', text: ''};
}

/** Why nothing has come from the server yet, in its own words if it has refused. */
function delay(): Reason {
  const problem = server.connection.value === 'retrying' ? server.problem.value : null;
  return problem === null ? {title: 'Loading…', text: ''} : {title: problem, text: 'The viewer tries again by itself.'};
}

/** How a run comes into this folder, which is not always that of a plain `watch(model)`. */
function NoRunHelp() {
  const folder = server.logdir.value;
  const backend = hostIsDark.value === null ? '' : 'backend="tensorboard", ';
  return (
    <>
      Add <code>{`watch(model, ${backend}logdir="${folder}")`}</code> to your training script, or try{' '}
      <code>torchgraph demo --logdir {folder}</code>. A new run appears here by itself.
    </>
  );
}

/** What the record notes of it; else when a step comes. */
function NoStepHelp({data}: {data: ModelData}) {
  const notes = notesOf(data);
  if (notes.length > 0) return <>{notes.map((note) => <p key={note}>{note}</p>)}</>;
  return shown.isOver.value ? <>The training ended before a step was over.</> : <>{waitText(data.session?.log_freq)}</>;
}

function waitText(logFreq: string | undefined): string {
  const first = 'The graph and the first histograms appear when the first recorded step has ended.';
  if (logFreq === undefined) return first;
  if (logFreq === '1') return `${first} Every step is recorded.`;
  if (logFreq === 'auto') return `${first} A few of the first steps are recorded, and then one in 50.`;
  return `${first} ${/^\d+$/.test(logFreq) ? `One step in ${logFreq} is recorded.` : `Recorded: ${logFreq}.`}`;
}
