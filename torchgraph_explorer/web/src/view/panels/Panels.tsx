/** The right pane: a column for every pinned node. */

import '../../charts/charts.css';

import './panels.css';

import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';

import type {Histories} from '../../model/histories';
import {parseKey} from '../../graph/keys';
import * as choices from '../state/choices';
import type {Pin} from '../state/choices';
import * as shown from '../state/shown';
import {areScalarsShown} from '../scalars/shownScalars';
import {RunsColumn} from '../comparison/RunsColumn';
import {isComparing} from '../comparison/state';
import {arrangement} from '../layout/sides';
import {Scalars} from '../scalars/Scalars';
import {ScalarsButton} from '../scalars/ScalarsButton';
import {HeadCard} from '../findings/FindingCard';
import {chosen, panelOfChosen} from '../findings/found';
import {XrayButton} from '../xray/XrayButton';
import {XrayPanel} from '../xray/XrayPanel';
import {isXrayShown} from '../xray/shownXray';
import {Column} from './Column';
import {settingOf} from './setting';

/** Of a panel and the gap beside it. */
const LEAST_PX = 300;

/** Columns of pinned nodes side by side, scrolled when they do not fit; without them, panels below each other when they do not fit. */
export function Panels(): JSX.Element {
  const pins = choices.pins.value;
  const model = shown.model.value;
  const setting = useMemo(() => model && settingOf(model), [model]);
  const names = columnNames(pins);
  const count = [isComparing, isXrayShown, areScalarsShown].filter((one) => one.value).length;
  const isStack = pins.length === 0 && (!isComparing.value || arrangement.value.panelsWidth < count * LEAST_PX + 8);
  return (
    <div class="panels">
      {model && <Problem histories={model.histories} />}
      {model && setting && chosen.value && panelOfChosen.value === null && <HeadCard finding={chosen.value} model={model} setting={setting} />}
      <div class={isStack ? 'panels-stack' : 'panels-columns'}>
        {isComparing.value && <RunsColumn />}
        {model && isXrayShown.value && <XrayPanel model={model} />}
        {model && areScalarsShown.value && <Scalars key={JSON.stringify(model.name)} model={model} />}
        {pins.map((pin) => (
          <Column key={names.get(pin) ?? pin.key} pin={pin} model={model} setting={setting} />
        ))}
        {pins.length === 0 && !isComparing.value && model && <Empty />}
      </div>
    </div>
  );
}

/** What tells columns apart: not the call that is shown, since one may choose another in its column. */
function columnNames(pins: readonly Pin[]): Map<Pin, string> {
  const names = pins.map((pin) => `${pin.colour} ${parseKey(pin.key)?.module ?? pin.key}`);
  return new Map(pins.map((pin, at) => [pin, names.indexOf(names[at]!) === at ? names[at]! : pin.key]));
}

function Empty(): JSX.Element {
  return (
    <div class="panels-empty">
      {shown.graph.value !== null && (
        <p>
          <strong>No node is pinned.</strong> Drag a node here, or select one and press <kbd>p</kbd>, to see its tensors and gradients over
          time.
        </p>
      )}
      <p>
        <XrayButton /> <ScalarsButton />
      </p>
    </div>
  );
}

function Problem({histories}: {histories: Histories}): JSX.Element | null {
  const problem = histories.problem.value;
  if (problem === null) return null;
  return (
    <p class="panels-problem" role="status">
      {problem} Trying again.
      <button type="button" onClick={() => histories.retry()}>
        Now
      </button>
    </p>
  );
}
