/** Fetches parts of tensors. The last ones are held, so that one can go to and fro. */

import {useEffect, useState} from 'preact/hooks';
import {answers, page} from '../../api/client';
import {mayPass, messageOf} from '../../api/errors';
import {latest} from '../../api/latest';
import type {ModelName} from '../../api/answers';
import type {KeptTensors, TensorGraph, TensorLine, TensorPart, WantedLine, WantedPart} from '../../api/tensors';
import {isMagnitude} from '../../tensors/shade';
import {useAnswer} from '../useAnswer';
import type {Answer} from '../useAnswer';

export type {Answer};

const MOST_HELD = 48;
const MOST_ELEMENTS = 1 << 23;

/** The latest answers, the oldest first. */
class Held<T> {
  readonly #all = new Map<string, T>();

  constructor(private readonly sizeOf: (value: T) => number) {}

  get(key: string): T | undefined {
    const found = this.#all.get(key);
    if (found !== undefined) this.set(key, found);
    return found;
  }

  set(key: string, value: T): void {
    this.#all.delete(key);
    this.#all.set(key, value);
    let size = [...this.#all.values()].reduce((sum, one) => sum + this.sizeOf(one), 0);
    for (const [oldest, one] of this.#all) {
      if (oldest === key || (this.#all.size <= MOST_HELD && size <= MOST_ELEMENTS)) break;
      this.#all.delete(oldest);
      size -= this.sizeOf(one);
    }
  }
}

const heldParts = new Held<TensorPart>(({values}) => values.length);
const heldGraphs = new Held<TensorGraph>(({edges}) => edges.length);
const heldLines = new Held<TensorLine>(({step}) => step.length);

/** A part of a tensor; null asks for nothing. `version` changes when steps may have been written again. */
export function usePart(model: ModelName | null, wanted: WantedPart | null, version: unknown): Answer<TensorPart> {
  const key = model === null || wanted === null ? null : JSON.stringify([model, wanted, version]);
  const ask = async (abort: AbortSignal): Promise<TensorPart> => {
    const part = await answers.tensor(model as ModelName, wanted as WantedPart, abort);
    return {...part, isMagnitude: isMagnitude(wanted as WantedPart, part.dtype)};
  };
  return useAnswer(key, ask, heldParts);
}

/** A line over steps or calls. */
export function useLine(model: ModelName | null, wanted: WantedLine | null, version: unknown): Answer<TensorLine> {
  const of = wanted?.over === 'steps' ? {...wanted, step: null} : wanted; // over all steps, whichever is on show
  const subject = model === null || wanted === null ? null : JSON.stringify([model, of]);
  const key = subject === null ? null : JSON.stringify([subject, version]);
  return useAnswer(key, (abort) => answers.tensorLine(model as ModelName, wanted as WantedLine, abort), heldLines, subject);
}

/** How often it is asked what a model that is not on show has kept: the poll asks for nothing of it. */
const KEPT_MS = 2000;

/** What was kept of a model that is not on show, also while it is written; null asks for nothing. */
export function useKept(model: ModelName | null): Pick<Answer<KeptTensors>, 'value' | 'problem'> {
  const key = model === null ? null : JSON.stringify(model);
  const [state, setState] = useState<{key: string | null; value: KeptTensors | null; problem: string | null}>(NOT_KNOWN);
  useEffect(() => {
    if (key === null) return undefined;
    const request = latest();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let version = '';
    const askLater = (): void => void (page === null && (timer = setTimeout(() => (document.hidden ? askLater() : ask()), KEPT_MS)));
    const ask = (): void => request.start((abort) => answers.tensors(JSON.parse(key) as ModelName, version, abort), take, fail);
    const take = (value: KeptTensors | null): void => {
      if (value !== null) setState({key, value, problem: null});
      version = value?.version ?? version;
      askLater();
    };
    const fail = (cause: unknown): void => {
      if (!mayPass(cause)) setState({key, value: null, problem: messageOf(cause)});
      version = mayPass(cause) ? version : '';
      askLater();
    };
    ask();
    return () => (clearTimeout(timer), request.abort());
  }, [key]);
  return state.key === key ? state : NOT_KNOWN;
}

const NOT_KNOWN = {key: null, value: null, problem: null};

/** The dependency graph of a step. */
export function useGraph(model: ModelName | null, step: number | null, version: unknown): Answer<TensorGraph> {
  const key = model === null || step === null ? null : JSON.stringify([model, step, version]);
  return useAnswer(key, (abort) => answers.tensorGraph(model as ModelName, step as number, abort), heldGraphs);
}
