/** All state of the viewer, in one place. `live.ts` and `follow.ts` write what the server said; what the user chose, any view. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {Finished, GraphInfo, ModuleGraph, RunInfo, SeriesInfo, Session} from '../../api/types';
import {usualGraph} from '../../model/updates';
import {belongs, callKey, groupSeries, parseKey} from '../../graph/keys';
import type {NodeKey, NodeSeries} from '../../graph/keys';
import type {Part} from './parts';

export type {NodeKey, NodeSeries, TensorSeries} from '../../graph/keys';

export type Connection = 'loading' | 'live' | 'empty' | 'retrying' | 'finished';
export type Theme = 'auto' | 'light' | 'dark';

/** Everything known of one model of one run, but for graphs, histograms and statistics. */
export interface ModelData {
  epoch: number;
  session: Session | null;
  /** One entry per frame, as the three below. */
  steps: number[];
  /** Seconds since the epoch. */
  times: number[];
  clock: (number | null)[];
  graphIds: (number | null)[];
  /** In the order of their ids; ids are valid within the epoch. */
  series: SeriesInfo[];
  graphs: GraphInfo[];
  finished: Finished | null;
  warnings: string[];
}

export interface Pin {
  key: NodeKey;
  /** Index of its colour: `var(--pin-0)` … `var(--pin-7)`. */
  colour: number;
}

export interface ChartOptions {
  mode: 'heat' | 'bands' | 'line';
  /** Drawn by `line`: one of `measures.ts`. */
  statistic: string;
  range: 'robust' | 'full';
  /** `auto` leaves it to the data. */
  scale: 'auto' | 'linear' | 'symlog';
  counts: 'linear' | 'log';
  time: 'step' | 'clock' | 'wall';
  /** Rows of a drawn histogram. */
  bins: number;
  /** Share of extreme elements that a robust range leaves out. */
  reject: number;
}

const PIN_COLOURS = 8;

export const CHART_DEFAULTS: ChartOptions = {
  mode: 'heat',
  statistic: 'mean',
  range: 'robust',
  scale: 'auto',
  counts: 'linear',
  time: 'step',
  bins: 64,
  reject: 0.1,
};

// What the server said.
export const logdir: Signal<string> = signal('');
export const runs: Signal<RunInfo[] | null> = signal(null);
export const connection: Signal<Connection> = signal<Connection>('loading');
/** What went wrong and what happens next, as a sentence. */
export const problem: Signal<string | null> = signal(null);
export const data: Signal<ModelData | null> = signal(null);
export const graph: Signal<ModuleGraph | null> = signal(null);

// What the user chose; mirrored in the URL.
export const run: Signal<string | null> = signal(null);
export const model: Signal<string | null> = signal(null);
/** The graph to show; null leaves it to the frame (see `graphInfo`). */
export const graphChoice: Signal<number | null> = signal(null);
/** The call that is open; `''` is the top, null the default (see `inside`). */
export const insideKey: Signal<NodeKey | null> = signal(null);
export const selected: Signal<NodeKey | null> = signal(null);
export const pins: Signal<Pin[]> = signal([]);
/** The chosen frame's index; null follows the latest. */
export const frame: Signal<number | null> = signal(null);
/** What the user changed of the chart options; read `chart`. */
export const chartChoice: Signal<Partial<ChartOptions>> = signal({});
/** `class`, or the name of a measure. */
export const colourBy: Signal<string> = signal('class');
export const theme: Signal<Theme> = signal<Theme>('auto');
/** The parts of the screen that the user has put away. */
export const hidden: Signal<readonly Part[]> = signal([]);

/** The frame under the pointer, on all charts at once. */
export const hoverFrame: Signal<number | null> = signal(null);

/** The frame on show: the chosen one, else the latest; null before the first. */
export const currentFrame: ReadonlySignal<number | null> = computed(() => {
  const last = (data.value?.steps.length ?? 0) - 1;
  return last < 0 ? null : Math.min(frame.value ?? last, last);
});

/** Chart options in force: what the user chose, else what the session was recorded with, else the defaults. */
export const chart: ReadonlySignal<ChartOptions> = computed(() => {
  const session = data.value?.session;
  const recorded = session ? {bins: session.bins, reject: session.reject_outlier_proportion} : {};
  return {...CHART_DEFAULTS, ...recorded, ...chartChoice.value};
});

/** The graph unless the user chooses one: that of the chosen frame, else the one that the latest frames usually have. */
export const automaticGraph: ReadonlySignal<GraphInfo | null> = computed(() => {
  const {graphs = [], graphIds = []} = data.value ?? {};
  const ofFrame = frame.value === null ? null : graphIds[frame.value];
  return knownGraph(ofFrame) ?? knownGraph(usualGraph(graphIds)) ?? graphs.at(-1) ?? null;
});

/** The graph on show. */
export const graphInfo: ReadonlySignal<GraphInfo | null> = computed(() => knownGraph(graphChoice.value) ?? automaticGraph.value);

function knownGraph(wanted: number | null | undefined): GraphInfo | undefined {
  return data.value?.graphs.find(({graph: id}) => id === wanted);
}

/** Key → index of every call of the graph. */
export const callIndex: ReadonlySignal<Map<NodeKey, number>> = computed(() => {
  const now = graph.value;
  return new Map((now?.calls ?? []).map((_, i) => [callKey(now as ModuleGraph, i), i]));
});

/** Index of the call that is open; null is the top. By default the model's own call, where there is just one. */
export const inside: ReadonlySignal<number | null> = computed(() => {
  const key = insideKey.value;
  if (key === '') return null;
  const chosen = key === null ? undefined : callIndex.value.get(key);
  if (chosen !== undefined) return chosen;
  const roots = (graph.value?.calls ?? []).flatMap((call, i) => (call.parent === null ? [i] : []));
  return roots.length === 1 ? (roots[0] as number) : null;
});

export function setChart(choice: Partial<ChartOptions>): void {
  chartChoice.value = {...chartChoice.value, ...choice};
}

/** Opens a panel for the node, with the first colour that is free; nothing when it has one. */
export function pin(key: NodeKey): void {
  if (isPinned(key)) return;
  const taken = new Set(pins.value.map(({colour}) => colour));
  const free = [...Array(PIN_COLOURS).keys()].find((colour) => !taken.has(colour));
  pins.value = [...pins.value, {key, colour: free ?? pins.value.length % PIN_COLOURS}];
}

export function unpin(key: NodeKey): void {
  pins.value = pins.value.filter((one) => one.key !== key);
}

export function isPinned(key: NodeKey): boolean {
  return pins.value.some((one) => one.key === key);
}

/** The series of a node of the current model, grouped as its panel shows them. */
export function seriesOfNode(key: NodeKey): NodeSeries {
  const parsed = parseKey(key);
  const all = data.value?.series ?? [];
  return groupSeries(parsed ? all.filter((one) => belongs(one, parsed)) : []);
}

/** The node that someone asked to see. The graph pane answers: opens its parent's inside, selects and centres it. */
export const wanted: Signal<{key: NodeKey} | null> = signal(null);

/** Finds a node again: shows, selects and centres it in the graph, whatever is open now. */
export function find(key: NodeKey): void {
  wanted.value = {key};
}
