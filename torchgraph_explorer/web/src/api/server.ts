/** Requests to the server, relative to the page, so that any path prefix works. A failed one throws a sentence. */

import type {Answers} from './answers';
import {ApiError, isAbort, UnreachableError} from './errors';
import {arrayOf, unpack} from './pack';
import type {Packed} from './pack';
import type {SeriesHistory} from './types';

type Params = Record<string, string | number>;

export const server: Answers = {
  runs: (signal) => json('runs', {}, signal),
  updates: (model, held, signal) => json('updates', {...model, ...held}, signal),
  graph: (model, graph, signal) => json('graph', {...model, graph}, signal),
  layout: (model, graph, inside, signal) => json('layout', {...model, graph, ...(inside === null ? {} : {inside})}, signal),
  history: async (model, {series, from}, signal) => {
    const packed = await binary<HistoryMeta>('history', {...model, series: series.join(','), from}, signal);
    const {epoch, frames} = packed.meta;
    return {epoch, frames, series: new Map(packed.meta.series.map((one) => [one, historyOf(packed, one)]))};
  },
  frame: async (model, frame, signal) => {
    const packed = await binary<{epoch: number; frame: number; step: number}>('frame', {...model, frame}, signal);
    const {epoch, frame: index, step} = packed.meta;
    const series = arrayOf(packed, 'series', Uint32Array);
    return {epoch, frame: index, step, series, statistics: arrayOf(packed, 'statistics', Float32Array)};
  },
};

interface HistoryMeta {
  epoch: number;
  frames: number;
  series: number[];
}

function historyOf(packed: Packed<unknown>, series: number): SeriesHistory {
  return {
    frame: arrayOf(packed, `${series}.frame`, Uint32Array),
    statistics: arrayOf(packed, `${series}.statistics`, Float32Array),
    offsets: arrayOf(packed, `${series}.offsets`, Uint32Array),
    buckets: arrayOf(packed, `${series}.buckets`, Int16Array),
    counts: arrayOf(packed, `${series}.counts`, Uint32Array),
  };
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
    throw new UnreachableError('The server does not answer.', {cause});
  });
  if (!response.ok) throw new ApiError(await sentenceOf(response), response.status);
  return response;
}

async function sentenceOf(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => null);
  const error = body !== null && typeof body === 'object' && 'error' in body ? body.error : null;
  return typeof error === 'string' ? error : `The server answered ${response.status} ${response.statusText}.`;
}
