/** An exported page answers for itself: its data are in it, where `server/page/loader.js` has unpacked them. */

import type {Answers, Known, ModelName, WantedLayout} from './answers';
import {numbersOf} from './numbers';
import type {Numbers} from './numbers';
import {unpack} from './pack';
import type {Packed} from './pack';
import {scalarValues} from './scalars';
import {graphIn, lineIn, partIn} from './pageTensors';
import type {PageTensors} from './pageTensors';
import {NOTHING_KEPT} from './tensors';
import {STATISTICS} from './types';
import type {ComparisonAnswer, Explanation, Findings, HiddenTensor, Layout, ModuleGraph, NonFinite, RunInfo, ScalarInfo, ScalarNews, StepNote, StepStatistics, Updates} from './types';

import {xrayOf} from './xray';
import type {WantedXray, XrayAnswer, XrayFacts} from './xray';

const NOT_ON_A_PAGE = 'This page does not hold all numbers of the run. To see this, open the run itself with “torchgraph serve”.';
const NO_TENSORS = 'This page has no values of kept tensors.';

declare global {
  /** Set before the viewer starts, and only in an exported page. */
  var torchgraphPage: ArrayBuffer | undefined;
}

/** How much of a model was recorded, of which the page may hold less. */
export interface Recorded {
  frames: number;
  series: number;
}

export interface Page {
  answers: Answers;
  /** The models of other runs that the page was made to compare with those of the first. */
  others: readonly ModelName[];
  recorded: (model: ModelName) => Recorded | null;
}

interface Meta {
  run: RunInfo;
  /** Runs that are compared with it, and how they differ from it. */
  others?: RunInfo[];
  comparisons?: PageComparison[];
  models: PageModel[];
  /** Of the kinds that were found, and of all to which these lead. */
  explanations?: Explanation[];
}

interface PageComparison {
  model: string;
  other_run: string;
  other_model: string;
  answer: ComparisonAnswer;
}

interface PageModel {
  /** Name of its run; left out on a page of one run. */
  run?: string;
  updates: Updates;
  graphs: ModuleGraph[];
  drawings: Drawing[];
  /** Per graph: pairs of an inside and the number of its drawing. */
  insides: {graph: number; insides: [number | null, number][]; /** With all equal siblings stacked, where there are some. */ stacked?: [number | null, number][]}[];
  recorded: Recorded;
  nonfinite: NonFinite & {hidden: Hidden};
  scalars: {scalars: ScalarInfo[]; notes: StepNote[]; unit: number};
  findings: Omit<Findings, 'version' | 'is_complete'>;
  xray: Omit<XrayFacts, 'version' | 'is_complete' | 'statistic'>;
  /** Only if they were asked for. */
  tensors?: PageTensors;
}

/** What holds NaN or infinity and has no numbers on the page: the tensors, and by frame spans of them. */
interface Hidden {
  tensors: HiddenTensor[];
  at: [start: number, stop: number][][];
}

/** A layout without the numbers of its nodes and edges, which are in the order that the graph has them in. */
interface Drawing {
  width: number;
  height: number;
  approximate: string | null;
  /** x, y, width, height. */
  nodes: [number, number, number, number][];
  /** x, y, x, y, … */
  edges: number[][];
  /** Which of `edges` are stubs. */
  stubs: number[];
  /** Where repeated calls are folded: which nodes and edges of the inside each of these stands for. */
  of_nodes?: number[][];
  of_edges?: number[][];
  stacks?: number[][];
  loops?: number[][];
}

interface OpenModel extends PageModel {
  numbers: Numbers;
  /** Its number in the page. */
  number: number;
  /** Which frames of the page it has; `updates` and `nonfinite` tell about these only. */
  kept: readonly number[];
}

/** The page that the viewer stands in, if that was exported. */
export function openPage(data: ArrayBuffer | undefined = globalThis.torchgraphPage): Page | null {
  if (data === undefined) return null;
  const packed = unpack<Meta>(data);
  const {run, models, others = [], comparisons = [], explanations = []} = packed.meta;
  const opened = models.map((model, number) => whole(model, number, numbersIn(packed, model, number)));
  const named = ({run: wanted, model}: ModelName): OpenModel | undefined =>
    opened.find((one) => one.updates.model === model && (others.length === 0 || one.run === wanted));
  const find = ({optimizer, ...name}: ModelName): OpenModel => {
    const one = found(named(name), `model ${name.model}`);
    return optimizer === undefined ? one : ofOptimizer(one, optimizer);
  };
  return {
    others: others.flatMap((one) => one.models.slice(0, 1).map((model) => ({run: one.run, model}))),
    recorded: (name) => named(name)?.recorded ?? null,
    answers: {
      runs: async () => ({logdir: '', runs: [run, ...others]}),
      updates: async (model, known) => updatesSince(find(model).updates, known),
      graph: async (model, graph) => graphOf(find(model), graph),
      layout: async (model, wanted) => layoutOf(find(model), wanted),
      history: async (model, {series}) => {
        const {numbers, kept} = find(model);
        return {epoch: 0, frames: kept.length, unit: 1, from: 0, series: new Map(series.map((one) => [one, numbers.history(one, kept)]))};
      },
      frame: async (model, step) => statisticsAt(find(model), step),
      nonfinite: async (model, known) => nonfiniteSince(find(model).nonfinite, known),
      findings: async (model) => ({...find(model).findings, version: 'page', is_complete: true}),
      explanation: async (kind) => explanations.find(({name}) => name === kind) ?? null,
      compare: async (model, other) =>
        found(comparisons.find((one) => isNamed(one, model, other)), `comparison of ${model.run} with ${other.run}`).answer,
      scalars: async (model, {scalars, known}) => (known === undefined ? scalarsIn(packed, find(model), scalars) : null),
      changes: notOnPage,
      related: notOnPage,
      calls: notOnPage,
      cooccurring: notOnPage,
      xray: async (model, wanted) => xrayIn(packed, find(model), wanted),
      tensors: async (model, version) => (version === NOTHING_KEPT.version ? (find(model).tensors?.kept ?? NOTHING_KEPT) : null),
      tensor: async (model, wanted) => ofKept(find(model), (kept, prefix) => partIn(packed, prefix, kept, wanted)),
      tensorGraph: async (model, step) => ofKept(find(model), (kept) => graphIn(kept, step)),
      tensorLine: async (model, wanted) => ofKept(find(model), (kept, prefix) => lineIn(packed, prefix, kept, wanted)),
    },
  };
}

async function notOnPage(): Promise<never> {
  throw new Error(NOT_ON_A_PAGE);
}

function ofKept<T>({tensors, number}: OpenModel, read: (kept: PageTensors, prefix: string) => T): T {
  if (!tensors) throw new Error(NO_TENSORS);
  return read(tensors, `${number}.`);
}

/** A comparison with the first run; the page has no others. */
function isNamed(one: PageComparison, {model}: ModelName, other: ModelName): boolean {
  return one.model === model && one.other_run === other.run && one.other_model === other.model;
}

function numbersIn(packed: Packed<unknown>, {updates}: PageModel, model: number): Numbers {
  return numbersOf(packed, `${model}.`, updates.frames.step.length);
}

function scalarsIn(packed: Packed<unknown>, {number, scalars}: OpenModel, wanted: readonly number[]): ScalarNews {
  const known = wanted.filter((one) => one < scalars.scalars.length);
  const values = known.map((one) => [one, scalarValues(packed, `${number}.scalars.${one}.`, scalars.unit)] as const);
  return {...scalars, version: 'page', from: 0, values: new Map(values)};
}

/** All steps of it, whichever are asked for: a page has no finer columns. */
function xrayIn(packed: Packed<unknown>, {number, xray}: OpenModel, {statistic, version}: WantedXray): XrayAnswer | null {
  const name = statistic !== null && xray.available.includes(statistic) ? statistic : (xray.available[0] ?? '');
  if (version === `page ${name}` || name === '') return null;
  const facts = {...xray, version: `page ${name}`, statistic: name, is_complete: true};
  return xrayOf(packed, facts, `${number}.xray.`, `codes.${name}`);
}

function whole(model: PageModel, number: number, numbers: Numbers): OpenModel {
  return {...model, number, numbers, kept: [...Array(numbers.frames).keys()]};
}

/** The model with only the frames whose step `optimizer` made. */
function ofOptimizer(model: OpenModel, optimizer: string): OpenModel {
  const {updates, nonfinite} = model;
  const {step, time, clock, graph, kind, passes} = updates.frames;
  const own = new Set<number | null>(updates.kinds.filter(({optimizers}) => optimizers.includes(optimizer)).map((one) => one.kind));
  const kept = model.kept.filter((frame) => own.has(kind[frame] ?? null));
  const of = <T>(all: readonly T[]): T[] => kept.map((frame) => all[frame] as T);
  const frames = {first: 0, step: of(step), time: of(time), clock: of(clock), graph: of(graph), kind: of(kind), passes: of(passes)};
  return {...model, kept, updates: {...updates, frames}, nonfinite: {...nonfinite, ...nonfiniteAt(nonfinite, frames.step)}};
}

/** What is known of NaN and infinity at these steps alone. */
function nonfiniteAt({bad, first}: NonFinite, steps: readonly number[]): Pick<NonFinite, 'bad' | 'first' | 'frames'> {
  const found = steps.filter((step) => bad.some(([from, to]) => from <= step && step <= to));
  const earliest = found[0] === undefined ? null : {step: found[0], tensor: null};
  return {
    frames: steps.length,
    bad: found.map((step) => [step, step, 1]),
    first: first !== null && first.step === found[0] ? first : earliest,
  };
}

function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`This page has no ${what}.`);
  return value;
}

/** Everything, and nothing from then on. */
function updatesSince(all: Updates, known: Known): Updates {
  if (known.epoch !== all.epoch) return all;
  const frames = {first: known.frames, step: [], time: [], clock: [], graph: [], kind: [], passes: []};
  return {...all, reset: false, frames, series: {first: known.series, items: []}};
}

function graphOf({graphs}: PageModel, graph: number): ModuleGraph {
  return found(graphs.find((one) => one.graph === graph), `graph ${graph}`);
}

/** On a page, all siblings of an inside are stacked as soon as some of them are to be. */
function layoutOf(model: PageModel, {graph, inside, stacked}: WantedLayout): Layout {
  const {nodes, edges} = graphOf(model, graph);
  const drawn = model.insides.find((one) => one.graph === graph);
  const insides = [...(stacked.length > 0 ? (drawn?.stacked ?? []) : []), ...(drawn?.insides ?? [])];
  const number = found(insides.find(([one]) => one === inside), `drawing of the inside ${inside}`)[1];
  const drawing = model.drawings[number] as Drawing;
  const isDrawn = nodes.map((node) => node.inside === inside);
  const nodesDrawn = nodes.flatMap((_, i) => (isDrawn[i] ? [i] : []));
  const edgesDrawn = edges.flatMap(({source, target}, i) => (isDrawn[source] && isDrawn[target] ? [i] : []));
  const {of_nodes: ofNodes, of_edges: ofEdges, stacks = [], ...rest} = drawing;
  const all = (drawn: readonly number[], groups: readonly number[][] | undefined, i: number): number[] =>
    (groups?.[i] ?? [i]).map((at) => drawn[at] as number);
  const stubs = new Set(drawing.stubs);
  return {
    ...rest,
    stacks: stacks.map((stack) => stack.map((at) => nodesDrawn[at] as number)),
    nodes: drawing.nodes.map(([x, y, width, height], i) => ({...standing('node', all(nodesDrawn, ofNodes, i)), x, y, width, height})),
    edges: drawing.edges.map((line, i) => ({...standing('edge', all(edgesDrawn, ofEdges, i)), points: pairs(line), is_stub: stubs.has(i)})),
  };
}

/** What a box or a line stands for: its first one, and all if they are several. */
function standing<Name extends 'node' | 'edge'>(name: Name, all: number[]): {all?: number[]} & Record<Name, number> {
  return {[name]: all[0], ...(all.length > 1 ? {all} : {})} as {all?: number[]} & Record<Name, number>;
}

function pairs(line: readonly number[]): [number, number][] {
  return Array.from({length: line.length / 2}, (_, i) => [line[2 * i] as number, line[2 * i + 1] as number]);
}

function nonfiniteSince(all: NonFinite, {epoch, frames}: Pick<Known, 'epoch' | 'frames'>): NonFinite {
  return epoch === all.epoch && frames === all.frames ? {...all, from: frames, bad: []} : all;
}

function statisticsAt({numbers, updates, kept, nonfinite: {hidden}}: OpenModel, step: number): StepStatistics {
  const width = STATISTICS.length;
  const frame = kept[updates.frames.step.indexOf(step)];
  if (frame === undefined) throw new Error(`This page has no step ${step}.`);
  const series = Uint32Array.from(Array(numbers.series).keys()).filter((one) => numbers.isPresent(one, frame));
  const statistics = new Float32Array(series.length * width);
  series.forEach((one, row) => statistics.set(numbers.statistics(one).subarray(frame * width, (frame + 1) * width), row * width));
  const unseen = (hidden.at[frame] ?? []).flatMap(([start, stop]) => hidden.tensors.slice(start, stop));
  return {epoch: 0, step, series, statistics, hidden: unseen};
}
