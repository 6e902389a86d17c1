/** Requests to the server, relative to the page, so that any path prefix works. A failed one throws a sentence. */

import {arrayOf, unpack} from './pack';
import type {Packed} from './pack';
import type {FrameStatistics, History, Layout, ModuleGraph, Runs, SeriesHistory, Updates} from './types';

type Params = Record<string, string | number>;

/** The server answered that it cannot; the message is its own sentence. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** No answer came: the server is gone, or the network. */
export class UnreachableError extends Error {}

export interface Model {
  run: string;
  model: string;
}

export function fetchRuns(signal?: AbortSignal): Promise<Runs> {
  return json('runs', {}, signal);
}

export interface Held {
  epoch: number;
  frames: number;
  series: number;
}

/** What is new for a client that holds `held`; `{epoch: -1, frames: 0, series: 0}` for everything. */
export function fetchUpdates(model: Model, held: Held, signal?: AbortSignal): Promise<Updates> {
  return json('updates', {...model, ...held}, signal);
}

export function fetchGraph(model: Model, graph: number, signal?: AbortSignal): Promise<ModuleGraph> {
  return json('graph', {...model, graph}, signal);
}

/** Where the nodes inside call `inside` stand; null is the top. */
export function fetchLayout(model: Model, graph: number, inside: number | null, signal?: AbortSignal): Promise<Layout> {
  return json('layout', {...model, graph, ...(inside === null ? {} : {inside})}, signal);
}

/** Frames `from` and later of each of `series` that has them. */
export async function fetchHistory(
  model: Model,
  {series, from}: {series: number[]; from: number},
  signal?: AbortSignal,
): Promise<History> {
  const packed = await binary<HistoryMeta>('history', {...model, series: series.join(','), from}, signal);
  const {epoch, frames} = packed.meta;
  return {epoch, frames, series: new Map(packed.meta.series.map((one) => [one, historyOf(packed, one)]))};
}

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

/** The statistics of every series at one frame. */
export async function fetchFrame(model: Model, frame: number, signal?: AbortSignal): Promise<FrameStatistics> {
  const packed = await binary<{epoch: number; frame: number; step: number}>('frame', {...model, frame}, signal);
  const {epoch, frame: index, step} = packed.meta;
  const series = arrayOf(packed, 'series', Uint32Array);
  return {epoch, frame: index, step, series, statistics: arrayOf(packed, 'statistics', Float32Array)};
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

export function isAbort(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'AbortError';
}

/** The sentence to show for something thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
