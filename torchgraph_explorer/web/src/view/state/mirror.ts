/** Keeps the address and the store in step, in both directions. */

import {batch, effect} from '@preact/signals';
import {tellHost} from '../../host/tensorboard';
import {changedOptions, decode, encode} from './address';
import type {Choices} from './address';
import {frameAtStep} from '../../model/updates';
import {wantedStep} from './live';
import * as store from './choices';

const SETTLE_MS = 150;

/** Reads the address once and from then on mirrors what is chosen. Opening a call makes an entry in the history. */
export function startMirror(): void {
  adopt(decode(location.hash));
  let visit: unknown = history.state ?? newVisit();
  let open = store.insideKey.value;
  let timer: ReturnType<typeof setTimeout> | undefined;
  put(location.href, 'replaceState', visit);
  window.addEventListener('popstate', ({state}) => {
    const wanted = decode(location.hash);
    const isOfVisit = state === visit;
    visit = state ?? newVisit();
    open = wanted.inside; // which has its entry
    (isOfVisit ? lead : adopt)(wanted);
    write(encode(choices()), 'replaceState', visit);
  });
  effect(() => {
    const fragment = encode(choices());
    const isOpened = store.insideKey.value !== open;
    open = store.insideKey.value;
    clearTimeout(timer);
    if (isOpened) write(fragment, 'pushState', visit);
    else timer = setTimeout(() => write(fragment, 'replaceState', visit), SETTLE_MS);
  });
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
    if (!(cause instanceof DOMException)) throw cause; // a sandboxed frame has no address of its own
  }
}

/** Back and forward lead in and out of calls; within a visit they do not undo pins or options. */
function lead({inside, selected}: Choices): void {
  batch(() => {
    store.insideKey.value = inside;
    store.selected.value = selected;
  });
}

function choices(): Choices {
  const frame = store.frame.value;
  const step = frame === null ? wantedStep.value : (store.data.value?.steps[frame] ?? null);
  return {
    run: store.run.value,
    model: store.model.value,
    graph: store.graphChoice.value,
    inside: store.insideKey.value,
    selected: store.selected.value,
    pins: store.pins.value,
    step,
    chart: changedOptions(store.chartChoice.value),
    colourBy: store.colourBy.value,
    theme: store.theme.value,
    hidden: store.hidden.value,
  };
}

function adopt(choices: Choices): void {
  batch(() => {
    const isOther = choices.run !== store.run.value || choices.model !== store.model.value;
    if (isOther) {
      store.data.value = null;
      store.graph.value = null;
      store.frame.value = null;
    }
    store.run.value = choices.run;
    store.model.value = choices.model;
    store.graphChoice.value = choices.graph;
    store.insideKey.value = choices.inside;
    store.selected.value = choices.selected;
    store.pins.value = choices.pins;
    store.chartChoice.value = choices.chart;
    store.colourBy.value = choices.colourBy;
    store.theme.value = choices.theme;
    store.hidden.value = choices.hidden;
    adoptStep(choices.step);
  });
}

function adoptStep(step: number | null): void {
  const steps = store.data.value?.steps;
  if (step !== null && steps?.length) store.frame.value = frameAtStep(steps, step);
  else store.frame.value = null;
  wantedStep.value = steps?.length ? null : step;
}
