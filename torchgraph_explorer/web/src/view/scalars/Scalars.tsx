/** The scalars that the training loop logged, a chart each, and its notes. */

import './Scalars.css';

import {useSignal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';
import {useId} from 'preact/hooks';
import {useDerived} from '../../charts/derived';
import {scalarGroups} from '../../charts/scalarGroups';
import type {ScalarGroup} from '../../charts/scalarGroups';
import type {Model} from '../../model/model';
import type {ScalarData} from '../../model/scalars';
import {counted} from '../../numberText';
import {compared} from '../comparison/state';
import {download, downloadHint, fileName} from '../controls/download';
import {IconButton} from '../controls/Icon';
import {Segments, Select} from '../controls/Select';
import type {Option} from '../controls/Select';
import {chooseTime, timeOptions, timesOf} from '../state/axis';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {countOf, scalarsCsv} from './csv';
import {Notes} from './Notes';
import {ScalarChart} from './ScalarChart';
import type {Ends} from './ScalarChart';

const SCALES: Option[] = [
  {value: 'linear', label: 'Linear'},
  {value: 'log', label: 'Log'},
];

/** Charts that are open at first; of more, only the first group is. */
const MOST_OPEN = 24;

export function Scalars({model}: {model: Model}) {
  const ends = useEnds(model);
  const data = model.scalars.data.value;
  if (data === null) return null;
  const names = namesIn([model, ...compared.value.slice(1).map((one) => one.model)]);
  const groups = scalarGroups(names);
  const isMany = names.length > MOST_OPEN;
  return (
    <section class="panel scalars" aria-label="Scalars">
      <Header model={model} data={data} />
      <div class="panel-body">
        {groups.map((group, i) => (
          <Group key={group.prefix} group={group} model={model} ends={ends} isOpenAtFirst={!isMany || i === 0} isFirst={i === 0} />
        ))}
        {names.length === 0 && <p class="panel-note">No scalar was logged.</p>}
        <Notes notes={data.notes} />
      </div>
    </section>
  );
}

/** What any of the models logged, in the order of the first. */
function namesIn(models: readonly Model[]): string[] {
  return [...new Set(models.flatMap((model) => model.scalars.data.value?.scalars.map(({name}) => name) ?? []))];
}

/** From the first to the last frame or value of all runs. */
function useEnds(model: Model): ReadonlySignal<Ends> {
  return useDerived(() => {
    let [left, right] = [Infinity, -Infinity];
    const include = (value: number): void => {
      if (value < left) left = value;
      if (value > right) right = value;
    };
    for (const one of [model, ...compared.value.slice(1).map((other) => other.model)]) includeAll(one, include);
    return left <= right ? {left, right} : {left: 0, right: 1};
  }, [model]);
}

function includeAll(model: Model, include: (value: number) => void): void {
  const {axis, place, frames} = timesOf(model);
  const at = place.value;
  if (frames.value.steps.length > 0) axis.value.values.forEach(include);
  for (const {step, last, time} of model.scalars.data.value?.values.values() ?? []) {
    for (let entry = 0; entry < step.length; entry++) {
      include(at(step[entry]!, time[entry]!));
      include(at(last[entry]!, time[entry]!));
    }
  }
}

function Header({model, data}: {model: Model; data: ScalarData}) {
  const chart = shown.chart.value;
  const isWide = choices.scalars.value === true || choices.pins.value.length > 0;
  return (
    <header class="scalars-header">
      <h2>Scalars</h2>
      <IconButton
        icon="save"
        label={[`Save ${counted(countOf(data), 'scalar')} as CSV: those that are shown`, downloadHint].filter(Boolean).join('. ')}
        disabled={countOf(data) === 0}
        onPress={() => download(new Blob([scalarsCsv(data)], {type: 'text/csv;charset=utf-8'}), fileName([model.name.run, model.name.model, 'scalars'], 'csv'))}
      />
      {!isWide && <IconButton icon="fit" label="Show the scalars larger" onPress={() => (choices.scalars.value = true)} />}
      <IconButton icon="close" label="Put the scalars away" onPress={putAway} />
      <div class="scalars-options" role="toolbar" aria-label="Options of the scalars">
        <Select label="Time axis" value={chart.time} options={timeOptions.value} onChoose={chooseTime} isBare />
        <Segments
          label="Value axis"
          value={chart.curves}
          options={SCALES}
          onChoose={(curves) => choices.setChart({curves: curves as 'linear' | 'log'})}
        />
      </div>
    </header>
  );
}

/** Where nothing is pinned, large scalars become small ones first. */
function putAway(): void {
  choices.scalars.value = choices.scalars.value === true && choices.pins.value.length === 0 ? null : false;
}

interface GroupProps {
  group: ScalarGroup;
  model: Model;
  ends: ReadonlySignal<Ends>;
  isOpenAtFirst: boolean;
  isFirst: boolean;
}

function Group({group: {prefix, names}, model, ends, isOpenAtFirst, isFirst}: GroupProps) {
  const isOpen = useSignal(isOpenAtFirst);
  const id = useId();
  const charts = names.map((name) => <ScalarChart key={name} name={name} model={model} ends={ends} />);
  if (prefix === '' && isFirst) return <div class="scalars-group">{charts}</div>;
  const title = prefix === '' ? 'other' : prefix; // else they would seem to be of the group above
  return (
    <section class="panel-section">
      <h3>
        <button type="button" aria-expanded={isOpen.value} aria-controls={id} onClick={() => (isOpen.value = !isOpen.value)}>
          <span class="fold" aria-hidden="true" />
          <span class="scalars-prefix" title={title}>
            <bdi>{title}</bdi>
          </span>
          <span class="panel-count">{names.length}</span>
        </button>
      </h3>
      <div id={id} class="scalars-group">
        {isOpen.value && charts}
      </div>
    </section>
  );
}
