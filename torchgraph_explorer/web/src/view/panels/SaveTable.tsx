/** The button that saves a series as a table. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';

import type {SeriesHistory} from '../../api/types';
import type {Model} from '../../model/model';
import {download, downloadHint, fileName} from '../controls/download';
import {Icon} from '../controls/Icon';
import {csvOf, isThinned} from './csv';

export interface SaveTableProps {
  model: Model;
  /** Of the series: `layer1.conv1, output, value`. */
  name: string;
  history: ReadonlySignal<SeriesHistory | null>;
}

export function SaveTable({model, name, history}: SaveTableProps): JSX.Element {
  const now = history.value;
  const merged = now !== null && isThinned(now) ? '; rows stand for several steps' : '';
  return (
    <button
      type="button"
      class="panel-button chart-save"
      aria-label={`Save ${name} as CSV`}
      title={[`Save as CSV: ${now?.frame.length ?? 0} rows${merged}.`, downloadHint].filter(Boolean).join(' ')}
      disabled={now === null}
      onClick={() => now !== null && save(model, name, now)}
    >
      <Icon name="save" />
    </button>
  );
}

function save(model: Model, name: string, history: SeriesHistory): void {
  const data = model.data.peek();
  if (data === null) return;
  const table = new Blob([csvOf(history, data)], {type: 'text/csv;charset=utf-8'});
  download(table, fileName([model.name.run, model.name.model, name, isThinned(history) ? 'steps merged' : null], 'csv'));
}
