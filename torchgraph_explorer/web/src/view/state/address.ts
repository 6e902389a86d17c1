/** What the user chose, as the fragment of the address: a link or a reload reproduces the screen. */

import {addTensorChoice, tensorChoiceIn, VIEWS} from '../../tensors/choice';
import type {TensorChoice, View} from '../../tensors/choice';
import {addComparison, comparisonIn} from '../../comparison/choice';
import type {ComparisonChoice} from '../../comparison/choice';
import {NETWORK_ORDERS} from '../../tensors/network';
import {PARTS} from './parts';
import type {Part} from './parts';
import {CHART_DEFAULTS} from '../../charts/options';
import type {ChartOptions} from '../../charts/options';
import type {ChosenCalls} from '../../graph/folds';
import {XRAY_FACES} from './choices';
import type {NetworkChoice, Pin, Stretch, TableChoice, Theme, XrayFace} from './choices';

/** Everything chosen. */
export interface Choices {
  /** Narrows the list of runs, and with it those that are compared if all that match are. */
  runFilter: string;
  run: string | null;
  model: string | null;
  /** Null leaves it to the step. */
  graph: number | null;
  /** `''` is the top, null the default. */
  inside: string | null;
  selected: string | null;
  pins: Pin[];
  step: number | null;
  /** Null for the steps of all. */
  optimizer: string | null;
  chart: Partial<ChartOptions>;
  colourBy: string;
  chosenCalls: ChosenCalls;
  areCallsSingle: boolean;
  stacked: readonly string[];
  /** Edges are drawn as wide as their gradient. */
  areWidthsShown: boolean;
  theme: Theme;
  /** Parts of the screen that were put away. */
  hidden: readonly Part[];
  /** The scalars were opened beside pins, or put away. Null leaves it to whether there are pins. */
  scalars: boolean | null;
  /** Name of the scalar behind the time bar; `''` is none, null the usual one. */
  curve: string | null;
  /** The x-ray was opened beside pins, or put away, like `scalars`. */
  xray: boolean | null;
  /** The statistic that it shows. */
  xrayStatistic: string | null;
  xrayFace: XrayFace;
  /** The steps that it is zoomed to; null for all. */
  xrayStretch: Stretch | null;
  /** How lists of modules are sorted and narrowed: the x-ray's table, and the page of modules. */
  table: TableChoice;
  network: NetworkChoice;
  /** The step that the one on show is compared with. */
  since: number | null;
  view: View;
  /** Name of a view of the user's own. */
  ownView: string | null;
  tensors: TensorChoice;
  /** Key of the chosen finding. */
  finding: string | null;
  comparison: ComparisonChoice;
}

const WORDS = {
  mode: ['heat', 'bands', 'line', 'ridge', 'overlay'],
  range: ['robust', 'full'],
  scale: ['auto', 'linear', 'symlog'],
  counts: ['linear', 'log'],
  curves: ['linear', 'log'],
  runs: ['over', 'beside', 'mean'],
} as const;
const TIME = /^(step|clock|wall|elapsed|scalar:.+)$/s;
const THEMES: readonly string[] = ['auto', 'light', 'dark'];

/** The fragment, without `#`; what is as by default is left out. */
export function encode(choices: Choices): string {
  const query = new URLSearchParams();
  if (choices.runFilter !== '') query.set('match', choices.runFilter);
  for (const name of ['run', 'model', 'inside', 'selected', 'optimizer', 'curve', 'finding'] as const) {
    if (choices[name] !== null) query.set(name, choices[name]);
  }
  if (choices.graph !== null) query.set('graph', String(choices.graph));
  for (const {key, colour, isOfAll, isPassing} of choices.pins) query.append('pin', `${colour}${isOfAll ? '*' : ''}${isPassing ? '~' : ''}.${key}`);
  for (const [key, call] of Object.entries(choices.chosenCalls)) if (call > 0) query.append('turn', `${call}.${key}`);
  if (choices.areCallsSingle) query.set('calls', 'single');
  for (const key of choices.stacked) query.append('stack', key);
  if (choices.step !== null) query.set('step', String(choices.step));
  for (const [name, value] of Object.entries(choices.chart)) query.set(name, String(value));
  if (choices.colourBy !== 'class') query.set('colour', choices.colourBy);
  if (!choices.areWidthsShown) query.set('width', 'none');
  if (choices.theme !== 'auto') query.set('theme', choices.theme);
  for (const part of PARTS) if (choices.hidden.includes(part)) query.append('hide', part);
  if (choices.scalars !== null) query.set('scalars', choices.scalars ? '1' : '0');
  if (choices.xray !== null) query.set('xray', choices.xray ? '1' : '0');
  if (choices.xrayStatistic !== null) query.set('cells', choices.xrayStatistic);
  if (choices.xrayFace !== 'picture') query.set('face', choices.xrayFace);
  if (choices.xrayStretch !== null) query.set('stretch', [choices.xrayStretch.from, choices.xrayStretch.to].map((step) => Number(step.toFixed(2))).join('-'));
  const {by, isDescending, words} = choices.table;
  if (by !== 'module' || isDescending) query.set('table', `${isDescending ? '-' : ''}${by}`);
  if (words !== '') query.set('modules', words);
  if (choices.network.by !== 'tree') query.set('network', choices.network.by);
  if (choices.network.words !== '') query.set('named', choices.network.words);
  if (choices.since !== null) query.set('since', String(choices.since));
  if (choices.view !== 'graph') query.set('view', choices.view);
  if (choices.ownView !== null) query.set('own', choices.ownView);
  addTensorChoice(query, choices.tensors);
  addComparison(query, choices.comparison);
  return query.toString();
}

/** What a fragment says; anything that is not understood is taken as not said. */
export function decode(fragment: string): Choices {
  const query = new URLSearchParams(fragment.replace(/^#/, ''));
  const theme = query.get('theme') ?? 'auto';
  return {
    runFilter: query.get('match') ?? '',
    run: query.get('run'),
    model: query.get('model'),
    graph: numberIn(query.get('graph'), 0, Number.MAX_SAFE_INTEGER),
    inside: query.get('inside'),
    selected: query.get('selected'),
    pins: query.getAll('pin').flatMap(pinOf),
    step: numberIn(query.get('step'), 0, Number.MAX_SAFE_INTEGER),
    optimizer: query.get('optimizer'),
    chart: chartOf(query),
    colourBy: query.get('colour') ?? 'class',
    chosenCalls: Object.fromEntries(query.getAll('turn').flatMap(turnOf)),
    areCallsSingle: query.get('calls') === 'single',
    stacked: query.getAll('stack'),
    areWidthsShown: query.get('width') !== 'none',
    theme: (THEMES.includes(theme) ? theme : 'auto') as Theme,
    hidden: PARTS.filter((part) => query.getAll('hide').includes(part)),
    scalars: claimIn(query.get('scalars')),
    xray: claimIn(query.get('xray')),
    xrayStatistic: query.get('cells'),
    xrayStretch: stretchIn(query.get('stretch')),
    table: tableIn(query.get('table') ?? 'module', query.get('modules') ?? ''),
    network: {by: NETWORK_ORDERS.find((one) => one === query.get('network')) ?? 'tree', words: query.get('named') ?? ''},
    xrayFace: XRAY_FACES.find((one) => one === query.get('face')) ?? 'picture',
    since: numberIn(query.get('since'), 0, Number.MAX_SAFE_INTEGER),
    curve: query.get('curve'),
    view: VIEWS.find((one) => one === query.get('view')) ?? 'graph',
    ownView: query.get('own'),
    tensors: tensorChoiceIn(query),
    finding: query.get('finding'),
    comparison: comparisonIn(query),
  };
}

function stretchIn(text: string | null): Stretch | null {
  const [, from, to] = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? '') ?? [];
  return from !== undefined && Number(from) < Number(to) ? {from: Number(from), to: Number(to)} : null;
}

function tableIn(order: string, words: string): TableChoice {
  const isDescending = order.startsWith('-');
  return {by: order.slice(isDescending ? 1 : 0), isDescending, words};
}

function claimIn(text: string | null): boolean | null {
  return text === '1' ? true : text === '0' ? false : null;
}

function pinOf(text: string): Pin[] {
  const [, colour, all, passing, key] = /^([0-7])(\*?)(~?)\.(.+)$/s.exec(text) ?? [];
  if (key === undefined) return [];
  return [{colour: Number(colour), key, ...(all ? {isOfAll: true} : {}), ...(passing ? {isPassing: true} : {})}];
}

function turnOf(text: string): [string, number][] {
  const match = /^(\d{1,9})\.(.+)$/s.exec(text);
  return match ? [[match[2] as string, Number(match[1])]] : [];
}

function chartOf(query: URLSearchParams): Partial<ChartOptions> {
  const words = Object.entries(WORDS).flatMap(([name, allowed]) => {
    const value = query.get(name);
    return value !== null && (allowed as readonly string[]).includes(value) ? [[name, value]] : [];
  });
  const bins = numberIn(query.get('bins'), 4, 512);
  const reject = numberIn(query.get('reject'), 0, 0.9);
  const statistic = query.get('statistic');
  const time = query.get('time');
  return {
    ...(Object.fromEntries(words) as Partial<ChartOptions>),
    ...(bins === null ? {} : {bins: Math.round(bins)}),
    ...(reject === null ? {} : {reject}),
    ...(statistic === null ? {} : {statistic}),
    ...(time !== null && TIME.test(time) ? {time: time as ChartOptions['time']} : {}),
  };
}

function numberIn(text: string | null, low: number, high: number): number | null {
  const value = text === null || text.trim() === '' ? NaN : Number(text);
  return value >= low && value <= high ? value : null;
}

/** Those of the chart's options that differ from the defaults, or that the user set against the session's. */
export function changedOptions(choice: Partial<ChartOptions>): Partial<ChartOptions> {
  const recorded: readonly string[] = ['bins', 'reject'];
  const entries = Object.entries(choice) as [keyof ChartOptions, ChartOptions[keyof ChartOptions]][];
  return Object.fromEntries(entries.filter(([name, value]) => recorded.includes(name) || value !== CHART_DEFAULTS[name]));
}
