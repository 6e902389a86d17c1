/** The x-ray's modules as a table: sorted by any statistic at the step, its change since another step, or its trend. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';
import {answers} from '../../api/client';
import {keepCurrent} from '../../api/current';
import type {XrayAnswer} from '../../api/xray';
import type {Model} from '../../model/model';
import {useDerived} from '../../charts/derived';
import {formatNumber, stepName, wholeNumber} from '../../numberText';
import {frameAtStep} from '../../steps';
import {arranged, csvOf, tableOf} from '../../xray/table';
import type {Order, TableRow} from '../../xray/table';
import {download, fileName} from '../controls/download';
import {Icon} from '../controls/Icon';
import {NumberInput} from '../controls/NumberInput';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {goToCell} from './goToCell';
import {completed, whole} from './store';

/** Rows in the page; the others are found by the filter, and are in the CSV. */
const MOST_ROWS = 300;

export function ModuleTable({model}: {model: Model}): JSX.Element {
  const order = choices.table.value;
  const all = whole.value;
  const steps = shown.data.value?.steps ?? [];
  const step = shown.step.value ?? 0;
  const other = steps[frameAtStep(steps, choices.since.value ?? steps[0] ?? 0) ?? 0] ?? 0;
  const now = useColumns(model, all?.available ?? [], step);
  const before = useColumns(model, all ? [all.statistic] : [], other);
  const rows = useDerived(() => {
    const now_ = whole.value;
    if (now_ === null) return [];
    const isShare = now_.statistics.find(({name}) => name === now_.statistic)?.is_share ?? false;
    return tableOf({now: now.value, before: before.value.get(now_.statistic) ?? null, all: now_, isShare});
  }, [now, before]);
  if (all === null) return <p class="dim pad">Reading the run …</p>;
  const labels = new Map(all.statistics.map(({name, label}) => [name, label]));
  const found = arranged(rows.value, order, order.words);
  const sort = (by: string): void => void (choices.table.value = {...order, by, isDescending: order.by === by ? !order.isDescending : by !== 'module'});
  const save = (): void => {
    const head = {statistics: all.available, chosen: all.statistic, since: other};
    download(new Blob([csvOf(found, head)], {type: 'text/csv;charset=utf-8'}), fileName([model.name.run, model.name.model, 'modules', `step ${step}`], 'csv'));
  };
  const columns = [...all.available.map((name) => [name, labels.get(name) ?? name] as const), ['change', `Change since ${wholeNumber(other)}`] as const, ['trend', 'Trend'] as const];
  return (
    <div class="xray-table">
      <div class="xray-table-bar">
        <label class="select">
          <span class="sr-only">Filter modules</span>
          <input type="search" aria-label="Filter modules" placeholder="Filter modules" value={order.words} onInput={(event) => (choices.table.value = {...order, words: event.currentTarget.value})} />
        </label>
        <label class="select" title="Change is of the chosen statistic">
          <span class="select-label">since step</span>
          <NumberInput label="Change since step" min={steps[0] ?? 0} max={steps.at(-1) ?? 0} value={other} onChoose={(chosen) => (choices.since.value = chosen || 0)} />
        </label>
        <span class="spacer" />
        <button type="button" class="xray-text-button" onClick={save} aria-label={`Save ${found.length} modules as CSV`} title="Save as CSV">
          <Icon name="save" />
        </button>
      </div>
      <div class="xray-table-scroll" tabIndex={0} role="region" aria-label="Modules at the step">
        <table>
          <thead>
            <tr>
              <Head name="module" label={`Module, at ${stepName(step)}`} order={order} onSort={sort} />
              {columns.map(([name, label]) => (
                <Head key={name} name={name} label={label} order={order} onSort={sort} isChosen={name === all.statistic} />
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, MOST_ROWS).map((row) => (
              <Row key={row.module} row={row} statistics={all.available} step={step} isShare={labels.size > 0 && isShareOf(all)} />
            ))}
          </tbody>
        </table>
        {found.length > MOST_ROWS && <p class="dim pad">{`The first ${MOST_ROWS} of ${wholeNumber(found.length)} modules. Filter or sort to see others.`}</p>}
        {found.length === 0 && <p class="dim pad">No module has this name.</p>}
      </div>
    </div>
  );
}

function isShareOf(all: XrayAnswer): boolean {
  return all.statistics.find(({name}) => name === all.statistic)?.is_share ?? false;
}

/** Each statistic at one step. */
function useColumns(model: Model, statistics: readonly string[], step: number) {
  const columns = useSignal<ReadonlyMap<string, XrayAnswer>>(new Map());
  const want = useMemo(() => keepCurrent<(XrayAnswer | null)[]>(() => undefined), []); // the poll says what is wrong with the server
  const epoch = model.data.value?.epoch;
  useEffect(() => {
    const wanted = {from: step, to: step, most: 64, version: ''};
    want({
      key: JSON.stringify([model.name, epoch, statistics, step]),
      version: model,
      fetch: (abort) => Promise.all(statistics.map((statistic) => completed(() => answers.xray(model.name, {...wanted, statistic}, abort)))),
      show: (found) => (columns.value = new Map(found.flatMap((one) => (one === null ? [] : [[one.statistic, atStep(one, step)] as const])))),
    });
  }, [model, epoch, statistics.join(), step]);
  useEffect(() => () => want(null), []);
  return columns;
}

/** A page has all columns; of them, that of the step. */
function atStep(answer: XrayAnswer, step: number): XrayAnswer {
  const columns = answer.first.length;
  if (columns <= 1) return answer;
  const column = Math.max(0, answer.first.findLastIndex((first) => first <= step));
  return {...answer, codes: Uint16Array.from(answer.modules, (_, row) => answer.codes[row * columns + column]!)};
}

interface HeadProps {
  name: string;
  label: string;
  order: Order;
  onSort: (name: string) => void;
  isChosen?: boolean;
}

function Head({name, label, order, onSort, isChosen}: HeadProps): JSX.Element {
  const sorted = order.by !== name ? 'none' : order.isDescending ? 'descending' : 'ascending';
  return (
    <th scope="col" aria-sort={sorted} class={isChosen ? 'is-chosen' : undefined}>
      <button type="button" onClick={() => onSort(name)}>
        {label}
        <span aria-hidden="true">{sorted === 'none' ? '' : sorted === 'descending' ? ' ▾' : ' ▴'}</span>
      </button>
    </th>
  );
}

function Row({row, statistics, step, isShare}: {row: TableRow; statistics: readonly string[]; step: number; isShare: boolean}): JSX.Element {
  const name = row.module || (shown.data.value?.session?.class_name ?? 'model');
  return (
    <tr class={row.isBad ? 'is-not-finite' : undefined}>
      <th scope="row" title={row.isBad ? `${name}: NaN or infinity at this step` : name}>
        <button type="button" onClick={() => goToCell(row.module, step)}>
          <bdi>{name}</bdi>
          {row.isBad && <b class="is-bad"> NaN or ∞</b>}
        </button>
      </th>
      {statistics.map((statistic) => (
        <td key={statistic}>{formatNumber(row.values[statistic] ?? NaN)}</td>
      ))}
      <td>{changeText(row.change, isShare)}</td>
      <td>{Number.isNaN(row.trend) ? '–' : row.trend.toFixed(2).replace('-', '−')}</td>
    </tr>
  );
}

function changeText(change: number, isShare: boolean): string {
  if (Number.isNaN(change)) return '–';
  return isShare ? `${change > 0 ? '+' : ''}${formatNumber(change)}` : `× ${formatNumber(change)}`;
}
