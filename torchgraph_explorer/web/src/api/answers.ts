/** What the viewer asks. A server answers it, or the page itself when it was exported. */

import type {AskedSteps, CallsHistogram, Changes, CoOccurrences, Related, RelatedTo, WantedXray, XrayAnswer} from './xray';
import type {KeptTensors, TensorGraph, TensorLine, TensorPart, WantedLine, WantedPart} from './tensors';
import type {ComparisonAnswer, Explanation, Findings, History, Layout, ModuleGraph, NonFinite, Runs, SameFindings, ScalarNews, SeriesName, StepStatistics, Updates} from './types';

/** Which model of which run. */
export interface ModelName {
  run: string;
  model: string;
  /** Only the frames whose step this optimizer made, numbered from 0; left out for all frames. */
  optimizer?: string;
}

/** How much a client has of an epoch already. */
export interface Known {
  epoch: number;
  frames: number;
  series: number;
}

export interface WantedLayout {
  graph: number;
  inside: number | null;
  isSingle: boolean;
  /** The equal siblings that begin with these nodes are drawn as one. */
  stacked: readonly number[];
}

export interface WantedHistory {
  series: number[];
  from: number;
  /** The frame before which to stop. */
  to?: number;
  /** How many entries can be shown; if there are more frames, neighbours are merged. */
  most?: number;
  /** Steps of the bins that the client has already. */
  unit?: number;
}

export interface WantedScalars {
  /** Their numbers. */
  scalars: number[];
  /** How many entries can be shown. */
  most: number;
  /** Of the latest answer for the same scalars, with its bins and the last step in it. */
  known?: {version: string; unit: number; from: number};
}

export interface Answers {
  runs: (signal?: AbortSignal) => Promise<Runs>;
  /** What is new for a client that holds `known`; `{epoch: -1, frames: 0, series: 0}` for everything. */
  updates: (model: ModelName, known: Known, signal?: AbortSignal) => Promise<Updates>;
  graph: (model: ModelName, graph: number, signal?: AbortSignal) => Promise<ModuleGraph>;
  /** Where the nodes inside call `inside` stand; null is the top. Repeated calls are one node unless they are wanted singly. */
  layout: (model: ModelName, wanted: WantedLayout, signal?: AbortSignal) => Promise<Layout>;
  /** Frames `from` and later of each of `series` that has them. */
  history: (model: ModelName, wanted: WantedHistory, signal?: AbortSignal) => Promise<History>;
  /** The statistics of every series at a recorded step. */
  frame: (model: ModelName, step: number, signal?: AbortSignal) => Promise<StepStatistics>;
  /** Where there is NaN or infinity, as far as that is new for a client that holds so many frames of an epoch. */
  nonfinite: (model: ModelName, known: Pick<Known, 'epoch' | 'frames'>, signal?: AbortSignal) => Promise<NonFinite>;
  /** What the rules say of the model, at the steps of all optimizers, for a client that has `version`. */
  findings: (model: ModelName, version: string, signal?: AbortSignal) => Promise<Findings | SameFindings>;
  /** What a kind of finding means; null for a kind without an entry. */
  explanation: (kind: string, signal?: AbortSignal) => Promise<Explanation | null>;
  /** How two models differ; `renames` has a rule a line. Takes seconds for long runs. */
  compare: (model: ModelName, other: ModelName, renames: string, signal?: AbortSignal) => Promise<ComparisonAnswer>;
  /** What was logged; null when nothing is new. */
  scalars: (model: ModelName, wanted: WantedScalars, signal?: AbortSignal) => Promise<ScalarNews | null>;
  /** The whole training in one picture; null when that is still `version`. */
  xray: (model: ModelName, wanted: WantedXray, signal?: AbortSignal) => Promise<XrayAnswer | null>;
  /** Which series are unlike their own past at a recorded step. */
  /** Also against the steps up to `since`; null for those before the step. */
  changes: (model: ModelName, step: number, since: number | null, signal?: AbortSignal) => Promise<Changes>;
  /** Which series move with a scalar or a series, or before it. */
  related: (model: ModelName, target: RelatedTo, signal?: AbortSignal) => Promise<Related>;
  /** A tensor of all calls of its module at a step, as one histogram. */
  calls: (model: ModelName, series: SeriesName, step: number, signal?: AbortSignal) => Promise<CallsHistogram>;
  /** What is unusual at some steps. */
  cooccurring: (model: ModelName, steps: AskedSteps, signal?: AbortSignal) => Promise<CoOccurrences>;
  /** Which tensors were kept whole at which steps; null when that is still `version`. */
  tensors: (model: ModelName, version: string, signal?: AbortSignal) => Promise<KeptTensors | null>;
  /** A part of a kept tensor. */
  tensor: (model: ModelName, wanted: WantedPart, signal?: AbortSignal) => Promise<TensorPart>;
  /** Which named tensors were computed from which at a kept step. */
  tensorGraph: (model: ModelName, step: number, signal?: AbortSignal) => Promise<TensorGraph>;
  /** An element of it, or facts of all elements, over all kept steps or over the calls in one. */
  tensorLine: (model: ModelName, wanted: WantedLine, signal?: AbortSignal) => Promise<TensorLine>;
}
