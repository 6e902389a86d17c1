/** Requests to the server, relative to the page, so that any path prefix works. A failed one throws a sentence. */

import type {Answers} from './answers';
import {ApiError, isAbort, SILENT, UnreachableError} from './errors';
import {ofFrames} from './frames';
import {arrayOf, unpack} from './pack';
import type {Packed} from './pack';
import {scalarValues} from './scalars';
import {joinedLine, lineOf, partOf} from './tensors';
import type {KeptTensors, TensorLine, WantedTensor} from './tensors';
import type {Explanation, ScalarInfo, SeriesHistory, SeriesName, StepNote} from './types';
import {xrayOf} from './xray';
import type {RelatedTo, XrayFacts} from './xray';

const NOT_FOUND = 404;

type Params = Record<string, string | number>;

export const server: Answers = {
  runs: (signal) => json('runs', {}, signal),
  updates: (model, known, signal) => json('updates', {...model, ...known}, signal),
  graph: (model, graph, signal) => json('graph', {...model, graph}, signal),
  layout: (model, {graph, inside, isSingle, stacked}, signal) => {
    const folding = {...(isSingle ? {single: 1} : {}), ...(stacked.length > 0 ? {stack: stacked.join(',')} : {})};
    return json('layout', {...model, graph, ...(inside === null ? {} : {inside}), ...folding}, signal);
  },
  history: async (model, {series, ...wanted}, signal) => {
    const packed = await binary<HistoryMeta>('history', {...model, series: series.join(','), ...wanted}, signal);
    const {epoch, frames, unit, from} = packed.meta;
    return {epoch, frames, unit, from, series: new Map(packed.meta.series.map((one) => [one, historyOf(packed, one)]))};
  },
  frame: async (model, step, signal) => {
    const packed = await binary<{epoch: number; step: number}>('frame', {...model, step}, signal);
    const {epoch} = packed.meta;
    const series = arrayOf(packed, 'series', Uint32Array);
    return {epoch, step: packed.meta.step, series, statistics: arrayOf(packed, 'statistics', Float32Array)};
  },
  nonfinite: (model, known, signal) => json('nonfinite', {...model, ...known}, signal),
  findings: ({run, model}, version, signal) => json('findings', {run, model, version}, signal),
  explanation: (kind, signal) => json<Explanation>('explanation', {kind}, signal).catch(nullIfMissing),
  compare: (model, other, renames, signal) => json('compare', {...model, other_run: other.run, other_model: other.model, rename: renames}, signal),
  scalars: async (model, {scalars, most, known}, signal) => {
    const packed = await binary<ScalarsMeta>('scalars', {...model, scalars: scalars.join(','), most, ...known}, signal);
    const {meta} = packed;
    if (meta.is_same) return null;
    return {...meta, values: new Map(meta.wanted.map((one) => [one, scalarValues(packed, `${one}.`, meta.unit)]))};
  },
  xray: async (model, {statistic, from, to, most, version}, signal) => {
    const range = {...(from === null ? {} : {from}), ...(to === null ? {} : {to})};
    const packed = await binary<XrayFacts & {is_same: boolean}>('xray', {...model, statistic: statistic ?? '', most, version, ...range}, signal);
    return packed.meta.is_same ? null : xrayOf(packed, packed.meta);
  },
  changes: (model, step, since, signal) => json('changes', {...model, step, ...(since === null ? {} : {since})}, signal),
  calls: (model, {module, call, role, path, kind}, step, signal) => json('calls', {...model, ...paramsOf({module, call, role, path, kind}), step}, signal),
  cooccurring: (model, steps, signal) =>
    json('related', {...model, ...('of' in steps ? {...relatedTo(steps.of), [steps.side]: steps.value, measure: steps.measure} : {from: steps[0], to: steps[1]})}, signal),
  related: (model, target, signal) => json('related', {...model, ...relatedTo(target)}, signal),
  tensors: async (model, version, signal) => {
    const found = await json<KeptTensors & {is_same: boolean}>('tensors', {...model, version}, signal);
    return found.is_same ? null : found;
  },
  tensor: async (model, {shrink, ...wanted}, signal) => {
    return partOf(await binary('tensor', {...model, ...paramsOf(wanted), shrink: shrink.join(',')}, signal));
  },
  tensorGraph: (model, step, signal) => json('tensor-graph', {...model, step}, signal),
  tensorLine: async (model, {index, ...wanted}, signal) => {
    const params = {...model, ...paramsOf(wanted), ...(index === null ? {} : {index})};
    let found: TensorLine | null = null;
    for (let from: number | null = 0; from !== null; ) {
      const packed: Packed<LineMeta> = await binary<LineMeta>('tensor-line', {...params, from}, signal);
      found = found === null ? lineOf(packed) : joinedLine(found, lineOf(packed));
      from = packed.meta.next;
    }
    return found as TensorLine;
  },
};

function nullIfMissing(cause: unknown): null {
  if (cause instanceof ApiError && cause.status === NOT_FOUND) return null;
  throw cause;
}

interface LineMeta {
  next: number | null;
  skipped: number;
}

/** Without the call of a parameter, which has none. */
function paramsOf({call, ...wanted}: WantedTensor | SeriesName): Params {
  return {...wanted, ...(call === null ? {} : {call})};
}

function relatedTo(target: RelatedTo): Params {
  return 'scalar' in target ? target : paramsOf(target);
}

interface ScalarsMeta {
  version: string;
  is_same: boolean;
  unit: number;
  from: number;
  wanted: number[];
  scalars: ScalarInfo[];
  notes: StepNote[];
}

interface HistoryMeta {
  epoch: number;
  frames: number;
  unit: number;
  from: number;
  series: number[];
}

function historyOf(packed: Packed<HistoryMeta>, series: number): SeriesHistory {
  const whole = (name: string): Uint32Array => arrayOf(packed, `${series}.${name}`, Uint32Array);
  const floats = (name: string): Float32Array => arrayOf(packed, `${series}.${name}`, Float32Array);
  const frames = ofFrames({
    frame: whole('frame'),
    statistics: floats('statistics'),
    offsets: whole('offsets'),
    buckets: arrayOf(packed, `${series}.buckets`, Int16Array),
    counts: whole('counts'),
  });
  const {unit} = packed.meta;
  if (unit === 1) return frames;
  const [lowest, highest] = [floats('lowest'), floats('highest')];
  return {...frames, unit, last: whole('last'), merged: whole('merged'), bad: whole('bad'), lowest, highest};
}

async function json<T>(path: string, params: Params, signal?: AbortSignal): Promise<T> {
  return (await (await answer(path, params, signal)).json()) as T;
}

async function binary<Meta>(path: string, params: Params, signal?: AbortSignal): Promise<Packed<Meta>> {
  return unpack<Meta>(await (await answer(path, params, signal)).arrayBuffer());
}

async function answer(path: string, params: Params, signal?: AbortSignal): Promise<Response> {
  const query = new URLSearchParams(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const response = await fetch(`./api/${path}?${query}`, signal ? {signal} : {}).catch((cause: unknown) => {
    if (isAbort(cause)) throw cause;
    throw new UnreachableError(SILENT, {cause});
  });
  if (!response.ok) throw new ApiError(await sentenceOf(response), response.status);
  return response;
}

async function sentenceOf(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => null);
  const error = body !== null && typeof body === 'object' && 'error' in body ? body.error : null;
  return typeof error === 'string' ? error : `The server answered ${response.status} ${response.statusText}.`;
}
