/** The right pane: a column for every pinned node. */

import '../../charts/charts.css';

import './panels.css';

import type {JSX, RefObject} from 'preact';
import {useEffect, useMemo, useRef} from 'preact/hooks';

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
import {ColumnBar, scrollTo} from './ColumnBar';
import {settingOf} from './setting';

/** Of a panel. */
const LEAST_PX = 300;

/** Columns of pinned nodes side by side, scrolled when they do not fit; without them, panels below each other when they do not fit. */
export function Panels(): JSX.Element {
  const pins = choices.pins.value;
  const model = shown.model.value;
  const setting = useMemo(() => model && settingOf(model), [model]);
  const names = columnNames(pins);
  const columns = useRef<HTMLDivElement>(null);
  useColumnInSight(columns, pins);
  const count = [isComparing, isXrayShown, areScalarsShown].filter((one) => one.value).length;
  const isStack = pins.length === 0 && (!isComparing.value || arrangement.value.panelsWidth < count * LEAST_PX + 8);
  return (
    <div class="panels">
      {model && <Problem histories={model.histories} />}
      {model && setting && chosen.value && panelOfChosen.value === null && <HeadCard finding={chosen.value} model={model} setting={setting} />}
      {!isStack && <ColumnBar pane={columns} />}
      <div ref={columns} class={isStack ? 'panels-stack' : 'panels-columns'}>
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

/** Brings the column of a node into sight when it is pinned, and the one that tells the chosen finding. */
function useColumnInSight(columns: RefObject<HTMLDivElement>, pins: readonly Pin[]): void {
  const before = useRef(pins);
  const finding = panelOfChosen.value === null ? null : choices.finding.value;
  useEffect(() => {
    const known = new Set(before.current.map(nameOf));
    const added = pins.find((pin) => !known.has(nameOf(pin)));
    before.current = pins;
    if (added) bringIntoSight(columns.current, added.key);
  }, [pins]);
  useEffect(() => {
    if (finding === null) return;
    bringIntoSight(columns.current, panelOfChosen.value!)?.querySelector('.panel-body')?.scrollTo({top: 0});
  }, [finding]);
}

/** Shows the column of a node. */
function bringIntoSight(pane: HTMLDivElement | null, key: string): HTMLElement | null {
  const column = pane?.querySelector<HTMLElement>(`[data-pin="${CSS.escape(key)}"]`) ?? null;
  if (pane === null || column === null) return null;
  scrollTo(pane, column);
  return column;
}

/** What tells columns apart: not the call that is shown, since one may choose another in its column. */
function columnNames(pins: readonly Pin[]): Map<Pin, string> {
  const names = pins.map(nameOf);
  return new Map(pins.map((pin, at) => [pin, names.indexOf(names[at]!) === at ? names[at]! : pin.key]));
}

function nameOf({colour, key}: Pin): string {
  return `${colour} ${parseKey(key)?.module ?? key}`;
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
      <p class="panels-whole">
        Of the whole run: <XrayButton /> <ScalarsButton />
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
