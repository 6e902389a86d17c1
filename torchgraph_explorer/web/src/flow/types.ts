/** The answers below `api/flow/`, as http_api.md has them. */

export interface TensorFacts {
  name: string;
  shape: number[];
  dtype: string;
  /** A gradient can reach it. */
  gradient: boolean;
}

/** For each dimension a number, `[start, stop]`, or null for all of it. */
export type Element = (number | [number, number] | null)[];

export interface Part {
  /** Another one for each content. */
  stamp: number;
  fault: string | null;
  isThere: boolean;
}

export interface FlowState {
  version: number;
  /** What changes are sent with: only pages of this server can read it. Another server numbers stamps anew. */
  key: string;
  title: string;
  tensors: TensorFacts[];
  /** Names of those that can be edited. */
  inputs: string[];
  chain: string[];
  /** For each tensor of the chain, the dimensions that tell its groups in links apart. */
  dims: number[][];
  selection: {tensor: string; elements: Element[]} | null;
  target: {name: string; now: string; before: string};
  /** Null where nothing can be edited. */
  edits: {undoable: number; redoable: number; edited: boolean} | null;
  parts: Record<string, Part>;
  /** What the elements of tensors of whole numbers stand for, by name, where that is known. */
  words: Record<string, string[]>;
  /** Words can be searched. */
  hasWords: boolean;
  /** For each pair of neighbours, whether its contributions are a guess. */
  estimates: boolean[];
  /** Everything that is wanted is computed. */
  isCurrent: boolean;
  busy: {what: string; done: number; count: number} | null;
}

export type Quantity = 'value' | 'gradient' | 'contribution';
export type When = 'now' | 'before' | 'difference';

/** Maps of a tensor: `[maps, rows, columns]`. */
export interface Maps {
  shape: [number, number, number];
  values: Float32Array;
  /** Least and largest finite value of the whole tensor. */
  low: number;
  high: number;
  sum: number;
  nonfinite: number;
}

/** The strongest links between two tensors of the chain. */
export interface Links {
  source: Uint32Array;
  target: Uint32Array;
  value: Float32Array;
  /** What each group of the first gets past the second. */
  past: Float32Array;
  /** The sum of |C| over all links. */
  total: number;
  count: number;
  /** How many groups each of the two has. */
  groups: [number, number];
}
