/** Fetches parts of tensors. The last ones are held, so that one can go to and fro. */

import {answers} from '../../api/client';
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
const heldKept = new Held<KeptTensors | null>((kept) => kept?.tensors.length ?? 0);
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
  const key = model === null || wanted === null ? null : JSON.stringify([model, wanted, version]);
  return useAnswer(key, (abort) => answers.tensorLine(model as ModelName, wanted as WantedLine, abort), heldLines);
}

/** What was kept of a model. */
export function useKept(model: ModelName | null, version: unknown): Answer<KeptTensors | null> {
  const key = model === null ? null : JSON.stringify([model, version]);
  return useAnswer(key, (abort) => answers.tensors(model as ModelName, '', abort), heldKept);
}

/** The dependency graph of a step. */
export function useGraph(model: ModelName | null, step: number | null, version: unknown): Answer<TensorGraph> {
  const key = model === null || step === null ? null : JSON.stringify([model, step, version]);
  return useAnswer(key, (abort) => answers.tensorGraph(model as ModelName, step as number, abort), heldGraphs);
}
