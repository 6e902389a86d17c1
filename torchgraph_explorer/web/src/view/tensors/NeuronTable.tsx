/** The neurons of a tensor as a table, which can be sorted and filtered. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';
import type {KeptInfo, TensorPart, WantedPart, What} from '../../api/tensors';
import {wholeNumber} from '../../numberText';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {indexOf} from '../../tensors/axes';
import {download, downloadHint, fileName} from '../controls/download';
import {Icon} from '../controls/Icon';
import {Fold} from './Controls';
import {fullName, variantName} from '../../tensors/names';
import type {Kept} from '../../tensors/names';
import {usePart} from './parts';
import {MOST_ELEMENTS, product} from '../../tensors/request';
import {isOpen, toggle} from './sections';
import {readable, shortest} from '../../tensors/shade';
import {neuronCsv} from './neuronCsv';
import * as store from './store';
import {filterOf, orderOf} from '../../tensors/table';
import type {Column} from '../../tensors/table';
import {TENSOR_DEFAULTS} from '../../tensors/choice';

interface TableProps {
  kept: Kept;
  info: KeptInfo;
  step: number;
}

export function NeuronTable(props: TableProps): JSX.Element {
  const title = props.info.batch_dim === null ? 'Elements' : 'Neurons';
  return (
    <Fold title={title} isOpen={isOpen('neurons')} onToggle={() => toggle('neurons')}>
      <Columns {...props} />
    </Fold>
  );
}

const PER_PAGE = 20;

function Columns({kept, info, step}: TableProps): JSX.Element {
  const batch = info.batch_dim;
  const sizes = info.kept_shape.filter((_, dim) => dim !== batch);
  const isLarge = product(sizes) > MOST_ELEMENTS;
  const {sample} = choices.tensors.value;
  const at = Math.min(typeof sample === 'number' ? sample : 0, Math.max(0, info.samples.length - 1));
  const gradient = (info.kind === 'value' ? kept.variants.find(({kind}) => kind !== 'value') : info) ?? null;
  const value = kept.variants.find(({kind}) => kind === 'value') ?? null;
  const ask = (one: KeptInfo | null, what: What): WantedPart | null => {
    if (one === null || (what !== 'values' && batch === null)) return null;
    const where = one.kept_shape.map((_, dim) => (dim === batch ? String(at) : ':')).join();
    const dims = [...one.kept_shape.keys()].filter((dim) => dim !== batch);
    return {...store.wantedTensor(one, step), what, at: what === 'values' ? where : '', shrink: what === 'values' ? dims : [...sizes.keys()]};
  };
  const [model, version] = [shown.model.value?.name ?? null, store.record.value];
  const number = info.samples[at];
  const of = batch === null ? '' : ` of sample ${number ?? at}`;
  const answers = [
    {name: `value${of}`, answer: usePart(model, ask(value, 'values'), version)},
    {name: `${(gradient === null ? 'gradient' : variantName(gradient)).toLowerCase()}${of}`, answer: usePart(model, ask(gradient, 'values'), version)},
    {name: 'mean of the batch', answer: usePart(model, ask(value, 'mean'), version)},
    {name: 'std of the batch', answer: usePart(model, ask(value, 'std'), version)},
    {name: 'largest of the batch', answer: usePart(model, ask(value, 'largest'), version)},
  ];
  const problem = answers.find(({answer}) => answer.problem !== null)?.answer.problem;
  const first = answers[0]?.answer.value ?? answers[1]?.answer.value ?? null;
  if (problem !== undefined && problem !== null) return <p class="tensor-problem">{problem}</p>;
  if (first === null) return <p class="dim">Loading …</p>;
  if (isLarge || first.merged !== null) return <Largest part={first} />;
  const columns = answers.flatMap(({name, answer}) => (answer.value === null ? [] : [{name, values: answer.value.values, dtype: answer.value.dtype}]));
  const whole = columns.filter(({values}) => values.length === columns[0]?.values.length);
  const name = fullName(shown.graph.value, info, store.calls.value.length > 1);
  return <Table key={kept.id} name={name} step={step} columns={whole} size={sizes} toPick={(row) => picked(indexOf(row, sizes), batch, at)} />;
}

/** The index in the tensor with the samples. */
function picked(index: readonly number[], batch: number | null, at: number): number[] {
  const isStatistic = store.statistic.value !== null;
  return batch === null || isStatistic ? [...index] : [...index.slice(0, batch), at, ...index.slice(batch)];
}

interface RowsProps {
  /** Of the tensor. */
  name: string;
  step: number;
  columns: readonly Column[];
  size: readonly number[];
  toPick: (row: number) => number[];
}

function Table({name: tensor, step, columns, size, toPick}: RowsProps): JSX.Element {
  const {sorting: wanted, filter} = choices.tensors.value;
  const page = useSignal(0);
  const {column, isDescending} = wanted.column < columns.length ? wanted : TENSOR_DEFAULTS.sorting;
  const values = columns[column]?.values ?? null;
  const rows = columns[0]?.values.length ?? 0;
  const test = filterOf(filter, values ?? columns[0]?.values ?? null, size);
  const order = useMemo(() => orderOf(rows, values, test ?? (() => true), isDescending), [rows, values, columns[0]?.values, filter, isDescending]);
  const last = Math.max(0, Math.ceil(order.length / PER_PAGE) - 1);
  const at = Math.min(page.value, last);
  const sortBy = (to: number): void => {
    store.change({sorting: to === column ? {column, isDescending: !isDescending} : {column: to, isDescending: to >= 0}});
    page.value = 0;
  };
  const save = (): void => {
    const table = new Blob([neuronCsv(columns, order, size)], {type: 'text/csv;charset=utf-8'});
    download(table, fileName([choices.run.peek(), choices.model.peek(), tensor, `step ${step}`], 'csv'));
  };
  return (
    <>
      <div class="tensor-bar">
        <label class="select">
          <span class="select-label">Filter</span>
          <input
            type="text"
            class="tensor-filter"
            placeholder="3, *   or   > 0.5   or   nan"
            aria-label="Filter: an index like 3, * or a comparison like > 0.5 with the sorted column"
            value={filter}
            onInput={({currentTarget}) => (store.change({filter: currentTarget.value}), (page.value = 0))}
          />
        </label>
        {test === null && <span class="is-bad">not understood: 3, * or &gt; 0.5 or |x| &gt; 2 or nan</span>}
        <span class="dim" role="status">
          {wholeNumber(order.length)} of {wholeNumber(rows)}
        </span>
        <Pager at={at} last={last} onGo={(to) => (page.value = to)} />
        <button type="button" class="panel-button" onClick={save} aria-label={`Save ${order.length} rows as CSV`} title={['Save as CSV', downloadHint].filter(Boolean).join('. ')}>
          <Icon name="save" />
        </button>
      </div>
      <div class="tensor-table-box">
        <table class="tensor-table">
          <thead>
            <tr>
              <Head name="index" isSorted={column === -1} isDescending={isDescending} onSort={() => sortBy(-1)} />
              {columns.map(({name}, i) => (
                <Head key={name} name={name} isSorted={column === i} isDescending={isDescending} onSort={() => sortBy(i)} />
              ))}
            </tr>
          </thead>
          <tbody>
            {order.slice(at * PER_PAGE, (at + 1) * PER_PAGE).map((row) => (
              <tr key={row}>
                <th scope="row">
                  <button type="button" title="Follow this element" onClick={() => store.change({pick: toPick(row)})}>
                    [{indexOf(row, size).join(', ')}]
                  </button>
                </th>
                {columns.map(({name, values: of, dtype}) => (
                  <Cell key={name} value={of[row] as number} dtype={dtype} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Its title has all digits. */
function Cell({value, dtype}: {value: number; dtype: string}): JSX.Element {
  return (
    <td class={Number.isFinite(value) ? '' : 'is-bad'} title={shortest(value, dtype)}>
      {readable(value, dtype)}
    </td>
  );
}

function Head({name, isSorted, isDescending, onSort}: {name: string; isSorted: boolean; isDescending: boolean; onSort: () => void}): JSX.Element {
  return (
    <th scope="col" aria-sort={isSorted ? (isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" onClick={onSort}>
        {name} <span aria-hidden="true">{isSorted ? (isDescending ? '▾' : '▴') : ''}</span>
      </button>
    </th>
  );
}

function Pager({at, last, onGo}: {at: number; last: number; onGo: (page: number) => void}): JSX.Element | null {
  if (last === 0) return null;
  return (
    <span class="tensor-pages" role="group" aria-label="Pages">
      <button type="button" class="button" disabled={at === 0} onClick={() => onGo(at - 1)}>
        Previous
      </button>
      <span>
        page {at + 1} of {last + 1}
      </span>
      <button type="button" class="button" disabled={at >= last} onClick={() => onGo(at + 1)}>
        Next
      </button>
    </span>
  );
}

/** Of a tensor too large for a table, the elements of the largest magnitude. */
function Largest({part}: {part: TensorPart}): JSX.Element {
  const extent = part.stop.map((stop, dim) => stop - (part.start[dim] as number));
  const {topIndex, topValue} = part.merged ?? {topIndex: new Float64Array(0), topValue: new Float64Array(0)};
  return (
    <>
      <p class="dim">There are too many elements for a table. These {topIndex.length} have the largest magnitude.</p>
      <div class="tensor-table-box">
        <table class="tensor-table">
          <thead>
            <tr>
              <th scope="col">index</th>
              <th scope="col">value</th>
            </tr>
          </thead>
          <tbody>
            {[...topIndex].slice(0, 100).map((at, i) => (
              <tr key={at}>
                <th scope="row">[{indexOf(at, extent).map((one, dim) => one + (part.start[dim] as number)).join(', ')}]</th>
                <Cell value={topValue[i] as number} dtype={part.dtype} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
