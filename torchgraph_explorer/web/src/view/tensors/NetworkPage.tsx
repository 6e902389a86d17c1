/** The tree of modules with their parameters. */

import './tensors.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {trainableText} from '../../graph/facts';
import {callKey} from '../../graph/keys';
import {percent} from '../../charts/format';
import {counted, wholeNumber} from '../../numberText';
import {MenuButton, Popover} from '../pane/GraphPane';
import * as choices from '../state/choices';
import {ViewTabs} from './ViewTabs';
import * as shown from '../state/shown';
import {arranged, networkRows} from '../../tensors/network';
import type {NetworkOrder, NetworkRow} from '../../tensors/network';

const COLUMNS: readonly (readonly [NetworkOrder, string])[] = [
  ['tree', 'module'],
  ['total', 'parameters'],
  ['own', 'own'],
  ['trainable', 'trainable'],
  ['calls', 'calls'],
];

/** Rows that are drawn at once. */
const MOST_ROWS = 600;

export function NetworkPage(): JSX.Element {
  const graph = shown.graph.value;
  const {by: order, words} = choices.network.value;
  const folded = useSignal<ReadonlySet<string>>(new Set());
  const rows = graph === null ? [] : networkRows(graph);
  const found = arranged(rows, {order, words, folded: folded.value});
  const fold = (name: string): void => {
    const next = new Set(folded.value);
    if (!next.delete(name)) next.add(name);
    folded.value = next;
  };
  return (
    <section class="tensors-page" aria-label="Network">
      <div class="pane-bar">
        <MenuButton />
        <ViewTabs />
        <h2 class="sr-only">Network</h2>
        <input type="search" class="network-search" placeholder="Name or class" aria-label="Find a module" value={words} onInput={({currentTarget}) => (choices.network.value = {by: order, words: currentTarget.value})} />
        <span class="dim" role="status">
          {words === '' ? counted(rows.length, 'module') : `${wholeNumber(found.length)} of ${counted(rows.length, 'module')}`}
        </span>
      </div>
      <div class="network-box">
        <table class="tensor-table network">
          <thead>
            <tr>
              {COLUMNS.map(([name, label]) => (
                <th key={name} scope="col" aria-sort={order === name ? (name === 'tree' ? 'ascending' : 'descending') : 'none'}>
                  <button type="button" onClick={() => (choices.network.value = {by: name, words})}>
                    {label} <span aria-hidden="true">{order === name ? '▾' : ''}</span>
                  </button>
                </th>
              ))}
              <th scope="col">share</th>
              <th scope="col">class</th>
              <th scope="col">shapes</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, MOST_ROWS).map((row) => (
              <Row key={row.number} row={row} isTree={order === 'tree'} isFolded={folded.value.has(row.module.name)} onFold={() => fold(row.module.name)} />
            ))}
          </tbody>
        </table>
        {found.length > MOST_ROWS && <p class="dim pad">{wholeNumber(found.length - MOST_ROWS)} more. Search to narrow them down.</p>}
        {graph === null && <p class="dim pad">No graph was recorded{shown.isOver.value ? '' : ' yet'}.</p>}
      </div>
      <Popover />
    </section>
  );
}

interface RowProps {
  row: NetworkRow;
  isTree: boolean;
  isFolded: boolean;
  onFold: () => void;
}

function Row({row: {module, depth, hasInside, share, calls, number}, isTree, isFolded, onFold}: RowProps): JSX.Element {
  const name = module.name === '' ? 'the model' : module.name;
  const short = isTree && depth > 1 ? name.slice(name.lastIndexOf('.') + 1) : name;
  return (
    <tr>
      <th scope="row" style={isTree ? {paddingLeft: `${8 + depth * 14}px`} : undefined}>
        {isTree && hasInside ? (
          <button type="button" class="network-fold" aria-expanded={!isFolded} aria-label={`Inside of ${name}`} onClick={onFold}>
            <span class="fold" aria-hidden="true" />
          </button>
        ) : (
          <span class="network-fold" />
        )}
        <button type="button" class="network-name" title={`Show ${name} in the graph`} disabled={calls === 0} onClick={() => showInGraph(number)}>
          <bdi>{short}</bdi>
        </button>
      </th>
      <td>{wholeNumber(module.total_params)}</td>
      <td>{wholeNumber(module.own_params)}</td>
      <td>{module.total_params === 0 ? '–' : trainableText(module)}</td>
      <td>{calls === 0 ? <span class="dim">not called</span> : calls}</td>
      <td>
        <span class="network-share" style={{'--share': `${100 * share}%`}}>
          {share === 0 ? '–' : percent(share, 1)}
        </span>
      </td>
      <td class="network-class" title={module.class_name}>
        {module.class_name}
      </td>
      <td class="network-shapes">
        {module.params.map(({path, shape, requires_grad}) => (
          <span key={path} class={requires_grad ? '' : 'dim'} title={requires_grad ? path : `${path}: frozen`}>
            {path} [{shape.map((size) => size ?? '?').join(', ')}]
          </span>
        ))}
      </td>
    </tr>
  );
}

function showInGraph(module: number): void {
  const graph = shown.graph.value;
  const call = graph?.calls.findIndex((one) => one.module === module) ?? -1;
  if (graph !== null && call >= 0) choices.find(callKey(graph, call));
}
