/** What the user chose, mirrored in the address; and what the pointer and the keyboard ask for. */

import {signal} from '@preact/signals';
import type {NetworkOrder} from '../../tensors/network';
import type {Signal} from '@preact/signals';
import type {ChartOptions} from '../../charts/options';
import {COMPARISON_DEFAULTS} from '../../comparison/choice';
import type {ComparisonChoice} from '../../comparison/choice';
import type {ChosenCalls} from '../../graph/folds';
import type {NodeKey} from '../../graph/keys';
import type {Part} from './parts';
import {TENSOR_DEFAULTS} from '../../tensors/choice';
import type {TensorChoice, View} from '../../tensors/choice';

export type Theme = 'auto' | 'light' | 'dark';

export interface Pin {
  key: NodeKey;
  /** Index of its colour: `var(--pin-0)` … `var(--pin-7)`. */
  colour: number;
  /** Its panel shows all calls of its module, at the step on show, and not one of them over the steps. */
  isOfAll?: boolean;
  /** It was opened by a look around, and the next look takes its place. */
  isPassing?: boolean;
}

const PIN_COLOURS = 8;

/** Narrows the list of runs: a regular expression, capitals or not; empty lets every run through. */
export const runFilter: Signal<string> = signal('');
export const run: Signal<string | null> = signal(null);
export const model: Signal<string | null> = signal(null);
/** The graph to show; null leaves it to the step. */
export const graphChoice: Signal<number | null> = signal(null);
/** The call that is open; `''` is the top, null the default (see `inside` in shown.ts). */
export const insideKey: Signal<NodeKey | null> = signal(null);
export const selected: Signal<NodeKey | null> = signal(null);
export const pins: Signal<Pin[]> = signal([]);
/** The step to show; null follows the latest. A model that has not recorded it shows its last one before. */
export const step: Signal<number | null> = signal(null);
/** Only the steps that this optimizer made are shown; null shows all. */
export const optimizer: Signal<string | null> = signal(null);
/** The chart options that the user changed (see `chart` in shown.ts). */
export const chartChoice: Signal<Partial<ChartOptions>> = signal({});
/** `class`, or the name of a measure. */
export const colourBy: Signal<string> = signal('class');
/** Which call each loop of repeated calls shows. */
export const chosenCalls: Signal<ChosenCalls> = signal({});
/** Equal siblings that are drawn as one node: the keys of the first of each. */
export const stacked: Signal<readonly NodeKey[]> = signal([]);
/** Repeated calls are drawn one by one, and not as one node. */
export const areCallsSingle: Signal<boolean> = signal(false);
/** Edges are drawn as wide as their gradient. */
export const areWidthsShown: Signal<boolean> = signal(true);
/** A stretch of steps. */
export interface Stretch {
  from: number;
  to: number;
}

export interface TableChoice {
  /** `module`, `change`, `trend`, or the name of a statistic. */
  by: string;
  isDescending: boolean;
  words: string;
}

export interface NetworkChoice {
  by: NetworkOrder;
  words: string;
}

export const theme: Signal<Theme> = signal<Theme>('auto');
/** The parts of the screen that the user has put away. */
export const hidden: Signal<readonly Part[]> = signal([]);

/** The scalars were opened beside pins, or put away; null leaves it to whether there are pins. */
export const scalars: Signal<boolean | null> = signal(null);
/** The x-ray was opened beside pins, or put away; null leaves it to whether there are pins. */
export const xray: Signal<boolean | null> = signal(null);
/** The statistic that the x-ray shows; null for the first one that the model has. */
export const xrayStatistic: Signal<string | null> = signal(null);
/** What the x-ray shows of the run. */
export const XRAY_FACES = ['picture', 'table', 'changes'] as const;
export type XrayFace = (typeof XRAY_FACES)[number];
export const xrayFace: Signal<XrayFace> = signal<XrayFace>('picture');
/** The steps that the x-ray is zoomed to; null for all. */
export const xrayStretch: Signal<Stretch | null> = signal(null);
/** How its table is sorted, and the words that narrow it. */
export const table: Signal<TableChoice> = signal({by: 'module', isDescending: false, words: ''});
/** The same of the page of modules. */
export const network: Signal<NetworkChoice> = signal({by: 'tree', words: ''});
/** The step that the one on show is compared with; null for the recorded one before it. */
export const since: Signal<number | null> = signal(null);
/** Name of the scalar behind the time bar; `''` is none, null the usual one. */
export const curve: Signal<string | null> = signal(null);

/** Which page takes the middle of the screen. */
export const view: Signal<View> = signal<View>('graph');
/** Name of the view of the user's own that is shown on its page; null for the first one. */
export const ownView: Signal<string | null> = signal(null);
/** What is chosen about kept tensors. */
export const tensors: Signal<TensorChoice> = signal(TENSOR_DEFAULTS);

/** Key of the finding whose words and band are shown; null without one. */
export const finding: Signal<string | null> = signal(null);

/** Which runs are compared with the one on show, and how. */
export const comparison: Signal<ComparisonChoice> = signal(COMPARISON_DEFAULTS);

/** The step under the pointer, on all charts at once. */
export const pointedStep: Signal<number | null> = signal(null);

/** The node that someone asked to see. The graph pane answers: opens its parent's inside, selects and centres it. */
export const wanted: Signal<{key: NodeKey} | null> = signal(null);

/** A place was asked for that is not on show yet: what is chosen on the way to it is one move. */
export const isOnTheWay: Signal<boolean> = signal(false);

/** Finds a node again: shows, selects and centres it in the graph, whatever is open now. */
export function find(key: NodeKey): void {
  view.value = 'graph';
  wanted.value = {key};
}

export function setChart(choice: Partial<ChartOptions>): void {
  chartChoice.value = {...chartChoice.value, ...choice};
}

/** Opens a panel for the node, with the first colour that is free; one that it has by a look around is kept. */
export function pin(key: NodeKey): void {
  if (isPinned(key)) return changePin(key, {isPassing: false});
  pins.value = [...pins.value, {key, colour: freeColour()}];
}

/** Opens a panel for the node in place of the one that was looked at before; does nothing when it has one. */
export function pinInPassing(key: NodeKey): void {
  if (isPinned(key)) return;
  const before = pins.value.find(({isPassing}) => isPassing);
  const next: Pin = {key, colour: before?.colour ?? freeColour(), isPassing: true};
  pins.value = before ? pins.value.map((one) => (one === before ? next : one)) : [...pins.value, next];
}

function freeColour(): number {
  const taken = new Set(pins.value.map(({colour}) => colour));
  return [...Array(PIN_COLOURS).keys()].find((colour) => !taken.has(colour)) ?? pins.value.length % PIN_COLOURS;
}

export function unpin(key: NodeKey): void {
  pins.value = pins.value.filter((one) => one.key !== key);
}

/** The panel of a pin shows something else; nothing where that has a panel of its own. */
export function changePin(key: NodeKey, change: Partial<Pin>): void {
  if (change.key !== undefined && change.key !== key && isPinned(change.key)) return;
  pins.value = pins.value.map((one) => (one.key === key ? {...one, ...change} : one));
}

export function isPinned(key: NodeKey): boolean {
  return pins.value.some((one) => one.key === key);
}

/** It has a panel that no look around takes away. */
export function isKept(key: NodeKey): boolean {
  return pins.value.some((one) => one.key === key && !one.isPassing);
}
