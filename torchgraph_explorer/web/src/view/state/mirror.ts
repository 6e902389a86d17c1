/** Keeps the address and what is chosen in step, in both directions. */

import {batch, effect} from '@preact/signals';
import {tellHost} from '../../host/tensorboard';
import {changedOptions, decode, encode} from './address';
import type {Choices} from './address';
import type {NodeKey} from '../../graph/keys';
import * as chosen from './choices';

const SETTLE_MS = 150;
const LONGEST_WAY_MS = 2000;

/** Reads the address once and from then on mirrors what is chosen. Going elsewhere (see `Place`) makes an entry in the history. */
export function startMirror(): void {
  adopt(decode(location.hash));
  let visit: unknown = history.state ?? newVisit();
  let here = placeOf(choices());
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isElsewhere = false;
  put(location.href, 'replaceState', visit);
  window.addEventListener('popstate', ({state}) => {
    const wanted = decode(location.hash);
    const isOfVisit = state === visit;
    visit = state ?? newVisit();
    here = placeOf(wanted); // which has its entry
    isElsewhere = false;
    (isOfVisit ? lead : adopt)(wanted);
    write(encode(choices()), 'replaceState', visit);
  });
  effect(() => {
    const now = choices();
    const fragment = encode(now);
    isElsewhere ||= isUsed() && hasMoved(here, placeOf(now));
    here = placeOf(now);
    clearTimeout(timer);
    const settled = (): void => {
      write(fragment, isElsewhere ? 'pushState' : 'replaceState', visit);
      isElsewhere = false;
    };
    // One press can choose several things one after the other, which are one entry.
    timer = setTimeout(settled, chosen.isOnTheWay.value ? LONGEST_WAY_MS : isElsewhere ? 0 : SETTLE_MS);
  });
}

/** Where a link leads, as to a finding, is where one begins: only what the user does from then on can be undone. */
function isUsed(): boolean {
  return globalThis.navigator?.userActivation?.hasBeenActive ?? true;
}

/** Where one is: a call that is open, of a model of a run, or another page of that; the panels and the finding beside it. */
interface Place extends Pick<Choices, 'run' | 'model' | 'view' | 'inside' | 'finding'> {
  panels: string;
}

function placeOf({run, model, view, inside, finding, pins}: Choices): Place {
  return {run, model, view, inside, finding, panels: JSON.stringify(pins.map(({key}) => nodeOf(key)).sort())};
}

/** Which call of it a panel shows is chosen by a slider, whose moves are no entries. */
function nodeOf(key: NodeKey): string {
  return key.replace(/#\d+/, '');
}

/** The user has gone elsewhere. The first run and model are not chosen by the user. */
function hasMoved(before: Place, now: Place): boolean {
  const {run, model} = before;
  const isOther = (['view', 'inside', 'finding', 'panels'] as const).some((name) => before[name] !== now[name]);
  return isOther || (run !== null && run !== now.run) || (model !== null && model !== now.model);
}

/** What marks all entries since an address was typed in or followed. That one has no mark at first. */
function newVisit(): number {
  return Date.now();
}

function write(fragment: string, how: 'pushState' | 'replaceState', visit: unknown): void {
  tellHost(fragment);
  if (location.hash.slice(1) !== fragment || history.state !== visit) put(`#${fragment}`, how, visit);
}

function put(address: string, how: 'pushState' | 'replaceState', visit: unknown): void {
  try {
    history[how](visit, '', address);
  } catch (cause) {
    if (!(cause instanceof DOMException)) throw cause; // a sandboxed iframe has no address of its own
  }
}

/** Back and forward lead to other places, and undo pins; within a visit they do not undo options. */
function lead({run, model, graph, optimizer, view, inside, selected, pins, finding}: Choices): void {
  const isOfOther = run !== chosen.run.value || model !== chosen.model.value;
  batch(() => {
    if (isOfOther) {
      chosen.run.value = run;
      chosen.model.value = model;
      chosen.graphChoice.value = graph;
      chosen.optimizer.value = optimizer;
    }
    chosen.view.value = view;
    chosen.insideKey.value = inside;
    chosen.selected.value = selected;
    chosen.pins.value = pins;
    chosen.finding.value = finding;
  });
}

function choices(): Choices {
  return {
    runFilter: chosen.runFilter.value,
    run: chosen.run.value,
    model: chosen.model.value,
    graph: chosen.graphChoice.value,
    inside: chosen.insideKey.value,
    selected: chosen.selected.value,
    pins: chosen.pins.value,
    step: chosen.step.value,
    optimizer: chosen.optimizer.value,
    chart: changedOptions(chosen.chartChoice.value),
    colourBy: chosen.colourBy.value,
    chosenCalls: chosen.chosenCalls.value,
    areCallsSingle: chosen.areCallsSingle.value,
    stacked: chosen.stacked.value,
    areWidthsShown: chosen.areWidthsShown.value,
    theme: chosen.theme.value,
    hidden: chosen.hidden.value,
    scalars: chosen.scalars.value,
    curve: chosen.curve.value,
    xray: chosen.xray.value,
    xrayStatistic: chosen.xrayStatistic.value,
    xrayFace: chosen.xrayFace.value,
    xrayStretch: chosen.xrayStretch.value,
    table: chosen.table.value,
    network: chosen.network.value,
    since: chosen.since.value,
    view: chosen.view.value,
    ownView: chosen.ownView.value,
    tensors: chosen.tensors.value,
    finding: chosen.finding.value,
    comparison: chosen.comparison.value,
  };
}

function adopt(choices: Choices): void {
  batch(() => {
    chosen.runFilter.value = choices.runFilter;
    chosen.run.value = choices.run;
    chosen.model.value = choices.model;
    chosen.graphChoice.value = choices.graph;
    chosen.insideKey.value = choices.inside;
    chosen.selected.value = choices.selected;
    chosen.pins.value = choices.pins;
    chosen.chartChoice.value = choices.chart;
    chosen.colourBy.value = choices.colourBy;
    chosen.chosenCalls.value = choices.chosenCalls;
    chosen.areCallsSingle.value = choices.areCallsSingle;
    chosen.stacked.value = choices.stacked;
    chosen.areWidthsShown.value = choices.areWidthsShown;
    chosen.theme.value = choices.theme;
    chosen.hidden.value = choices.hidden;
    chosen.scalars.value = choices.scalars;
    chosen.curve.value = choices.curve;
    chosen.xray.value = choices.xray;
    chosen.xrayStatistic.value = choices.xrayStatistic;
    chosen.xrayFace.value = choices.xrayFace;
    chosen.xrayStretch.value = choices.xrayStretch;
    chosen.table.value = choices.table;
    chosen.network.value = choices.network;
    chosen.since.value = choices.since;
    chosen.view.value = choices.view;
    chosen.ownView.value = choices.ownView;
    chosen.tensors.value = choices.tensors;
    chosen.finding.value = choices.finding;
    chosen.comparison.value = choices.comparison;
    chosen.step.value = choices.step;
    chosen.optimizer.value = choices.optimizer;
  });
}
