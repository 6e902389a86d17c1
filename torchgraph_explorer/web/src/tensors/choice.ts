/** What the user chose about kept tensors, and how the address says it. Pure. */

import type {ComplexPart} from '../api/tensors';
import type {Variant} from './names';
import type {ScaleChoice} from './shade';
import type {Sorting} from './table';

/** Which page takes the middle of the screen. */
export type View = 'graph' | 'tensors' | 'network' | 'own';
export const VIEWS: readonly View[] = ['graph', 'tensors', 'network', 'own'];

/** A kept sample by its position among them; all of them; or a statistic of each neuron over the whole batch. */
export type Sample = number | 'all' | 'mean' | 'std' | 'largest';
export type Look = 'auto' | 'heat' | 'bars' | 'grey' | 'rgb';
export type Over = 'steps' | 'calls';
/** The parts below the picture. */
export type Section = 'categories' | 'time' | 'neurons' | 'scatter';

/** A factor, or so small that everything is in sight. */
export type Zoom = number | 'fit';

/** What stands beside the tensor, to be compared with it. */
export type Beside = {step: number} | {sample: number} | {run: string};

/** What is chosen for one tensor, and is taken up again when it is shown again. */
export interface OwnChoice {
  /** A letter for the role of each dimension; null leaves them to the shape. */
  axes: string | null;
  /** Index along each dimension, for those that are sliders. */
  at: number[];
  /** Range along each dimension, of a part that is looked at closely. */
  ranges: string | null;
  /** Index of one element. */
  pick: number[] | null;
  /** Which facets are shown, where there are many. */
  page: number;
  /** What is typed into the filter of the table. */
  filter: string;
}

export interface TensorChoice extends OwnChoice {
  id: string | null;
  /** The values, or a gradient. */
  kind: Variant;
  /** The call that was chosen, for tensors of modules that are called as often; null for the first. */
  call: number | null;
  sample: Sample;
  look: Look;
  scale: ScaleChoice;
  part: ComplexPart;
  rank: number | null;
  beside: Beside | null;
  /** The tensor that a scatter compares this one with. */
  other: string | null;
  over: Over;
  closed: readonly Section[];
  /** What the table is sorted by. */
  sorting: Sorting;
  /** The tensors are chosen in the dependency graph, not in the list. */
  isGraph: boolean;
  /** The node of the graph that is chosen; null for that of the tensor. */
  node: string | null;
  /** The node to which paths are shown. */
  pathTo: string | null;
  /** All links of the graph are drawn. */
  areAllShown: boolean;
  /** How large the graph is drawn. */
  graphZoom: Zoom;
  /** The label that the steps have which are gone through; null for all. */
  label: string | null;
}

export const OWN_DEFAULTS: OwnChoice = {axes: null, at: [], ranges: null, pick: null, page: 0, filter: ''};
const SECTIONS: readonly Section[] = ['categories', 'time', 'neurons', 'scatter'];
export const TENSOR_DEFAULTS: TensorChoice = {
  ...OWN_DEFAULTS,
  id: null,
  kind: 'value',
  call: null,
  sample: 0,
  look: 'auto',
  scale: 'all',
  part: 'abs',
  rank: null,
  beside: null,
  other: null,
  over: 'steps',
  closed: ['neurons', 'scatter'],
  sorting: {column: -1, isDescending: false},
  isGraph: false,
  node: null,
  pathTo: null,
  areAllShown: false,
  graphZoom: 1,
  label: null,
};

const LOOKS: readonly Look[] = ['auto', 'heat', 'bars', 'grey', 'rgb'];
const SCALES: readonly ScaleChoice[] = ['all', 'typical', 'facet'];
const PARTS: readonly ComplexPart[] = ['abs', 'real', 'imag', 'angle'];
const OVERS: readonly Over[] = ['steps', 'calls'];
const STATISTICS: readonly Sample[] = ['all', 'mean', 'std', 'largest'];

/** Adds what differs from the defaults to a query. */
export function addTensorChoice(query: URLSearchParams, choice: TensorChoice): void {
  const texts: Record<string, string | null> = {
    tensor: choice.id,
    kind: choice.kind === 'value' ? null : choice.kind,
    call: choice.call === null ? null : String(choice.call),
    sample: choice.sample === 0 ? null : String(choice.sample),
    look: choice.look === 'auto' ? null : choice.look,
    shade: choice.scale === 'all' ? null : choice.scale,
    part: choice.part === 'abs' ? null : choice.part,
    rank: choice.rank === null ? null : String(choice.rank),
    beside: choice.beside === null ? null : besideText(choice.beside),
    other: choice.other,
    over: choice.over === 'steps' ? null : choice.over,
    closed: choice.closed.join() === TENSOR_DEFAULTS.closed.join() ? null : choice.closed.join(),
    sort: sortingText(choice.sorting),
    filter: choice.filter || null,
    list: choice.isGraph ? 'graph' : null,
    node: choice.node,
    path: choice.pathTo,
    links: choice.areAllShown ? 'all' : null,
    large: choice.graphZoom === 1 ? null : zoomText(choice.graphZoom),
    label: choice.label,
    axes: choice.axes,
    at: choice.at.some((one) => one > 0) ? choice.at.join() : null,
    zoom: choice.ranges,
    pick: choice.pick?.join() ?? null,
    facets: choice.page === 0 ? null : String(choice.page),
  };
  for (const [name, text] of Object.entries(texts)) if (text !== null) query.set(name, text);
}

/** What a query says; what is not understood is as by default. */
export function tensorChoiceIn(query: URLSearchParams): TensorChoice {
  const one = <T extends string>(name: string, allowed: readonly T[], otherwise: T): T =>
    allowed.find((text) => text === query.get(name)) ?? otherwise;
  const closed = query.get('closed');
  return {
    id: query.get('tensor'),
    kind: query.get('kind') ?? 'value',
    call: whole(query.get('call')),
    sample: sampleFrom(query.get('sample')),
    look: one('look', LOOKS, 'auto'),
    scale: one('shade', SCALES, 'all'),
    part: one('part', PARTS, 'abs'),
    rank: whole(query.get('rank')),
    beside: besideFrom(query.get('beside')),
    other: query.get('other'),
    over: one('over', OVERS, 'steps'),
    closed: closed === null ? TENSOR_DEFAULTS.closed : SECTIONS.filter((section) => closed.split(',').includes(section)),
    sorting: sortingFrom(query.get('sort')),
    filter: query.get('filter') ?? '',
    isGraph: query.get('list') === 'graph',
    node: query.get('node'),
    pathTo: query.get('path'),
    areAllShown: query.get('links') === 'all',
    graphZoom: query.get('large') === 'fit' ? 'fit' : zoomWithin(Number(query.get('large') ?? 1)),
    label: query.get('label'),
    axes: query.get('axes'),
    at: numbers(query.get('at')) ?? [],
    ranges: rangesFrom(query.get('zoom')),
    pick: numbers(query.get('pick')),
    page: whole(query.get('facets')) ?? 0,
  };
}

/** Number of the column, with a sign where the largest come first; null where it is sorted by index. */
function sortingText({column, isDescending}: Sorting): string | null {
  if (column < 0) return isDescending ? 'last' : null;
  return `${isDescending ? '-' : ''}${column}`;
}

function sortingFrom(text: string | null): Sorting {
  if (text === 'last') return {column: -1, isDescending: true};
  const [, sign, column] = /^(-?)(\d{1,3})$/.exec(text ?? '') ?? [];
  return column === undefined ? TENSOR_DEFAULTS.sorting : {column: Number(column), isDescending: sign === '-'};
}

/** A size at which the dependency graph is drawn. */
export function zoomWithin(wanted: number): number {
  return Number.isFinite(wanted) ? Math.max(0.2, Math.min(3, wanted)) : 1;
}

function zoomText(zoom: Zoom): string {
  return zoom === 'fit' ? zoom : String(Number(zoom.toPrecision(3)));
}

function sampleFrom(text: string | null): Sample {
  return STATISTICS.find((one) => one === text) ?? whole(text) ?? 0;
}

function besideText(beside: Beside): string {
  if ('step' in beside) return `step:${beside.step}`;
  return 'sample' in beside ? `sample:${beside.sample}` : `run:${beside.run}`;
}

function besideFrom(text: string | null): Beside | null {
  const [, what, rest = ''] = /^(step|sample|run):(.+)$/s.exec(text ?? '') ?? [];
  if (what === 'run') return {run: rest};
  const number = whole(rest);
  if (number === null) return null;
  return what === 'step' ? {step: number} : what === 'sample' ? {sample: number} : null;
}

function rangesFrom(text: string | null): string | null {
  return text !== null && /^(:|\d+:\d+)(,(:|\d+:\d+))*$/.test(text) ? text : null;
}

function numbers(text: string | null): number[] | null {
  const found = (text ?? '').split(',').map(whole);
  return found.every((one) => one !== null) ? found : null;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
