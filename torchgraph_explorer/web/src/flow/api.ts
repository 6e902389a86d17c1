/** Requests about the model that is explored. A failed one throws a sentence. */

import {ApiError, isAbort, UnreachableError} from '../api/errors';
import {arrayOf, unpack} from '../api/pack';
import type {Packed} from '../api/pack';
import type {FlowState, Links, Maps, Quantity, When} from './types';

/** The state; if its version is `known`, the next one, or after some seconds the same. */
export async function askState(known: number, signal: AbortSignal): Promise<FlowState> {
  return (await (await ask(`state?known=${known}`, {signal})).json()) as FlowState;
}

export interface WantedMaps {
  name: string;
  quantity: Quantity;
  when: When;
  /** An index for each dimension but the last two; the last may be `all`. */
  lead: readonly string[];
}

export async function askMaps({name, quantity, when, lead}: WantedMaps, signal: AbortSignal): Promise<Maps> {
  const query = new URLSearchParams({name, quantity, when, lead: lead.join(',')});
  const packed = await numbers<Omit<Maps, 'shape' | 'values'>>(`tensor?${query}`, signal);
  const shape = packed.arrays.get('values')?.shape as Maps['shape'];
  return {...packed.meta, shape, values: arrayOf(packed, 'values', Float32Array)};
}

export async function askLinks(pair: number, most: number, signal: AbortSignal): Promise<Links> {
  const packed = await numbers<Pick<Links, 'total' | 'count' | 'groups'>>(`links?pair=${pair}&most=${most}`, signal);
  const whole = (name: string) => arrayOf(packed, name, Uint32Array);
  const floats = (name: string) => arrayOf(packed, name, Float32Array);
  return {...packed.meta, source: whole('source'), target: whole('target'), value: floats('value'), past: floats('past')};
}

/** Tokens whose words are like `text`, the most like it first. */
export async function askWords(text: string): Promise<[number, string][]> {
  const answer = await ask(`words?${new URLSearchParams({like: text})}`, {});
  return ((await answer.json()) as {found: [number, string][]}).found;
}

/** Numbers that are not there any more are no failed request: there is a newer state. */
async function numbers<Meta>(path: string, signal: AbortSignal): Promise<Packed<Meta>> {
  const packed = unpack<Meta & {fault?: string}>(await (await ask(path, {signal})).arrayBuffer());
  if (packed.meta.fault !== undefined) throw new ApiError(packed.meta.fault, 404);
  return packed;
}

/** Changes what is explored, for all pages that show it. `key` is that of the state. */
export async function change(what: string, values: Record<string, unknown>, key: string): Promise<void> {
  await ask(what, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Torchgraph-Key': key}, body: JSON.stringify(values)});
}

async function ask(path: string, options: RequestInit): Promise<Response> {
  const response = await fetch(`./api/flow/${path}`, options).catch((cause: unknown) => {
    if (isAbort(cause)) throw cause;
    throw new UnreachableError('The model is not there any more: the program that explored it has ended or gone on.', {cause});
  });
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as {error?: string} | null;
  throw new ApiError(body?.error ?? `The server answered ${response.status}.`, response.status);
}
