/** What the viewer asks. A server answers it, or the page itself when it was exported. */

import type {FrameStatistics, History, Layout, ModuleGraph, NonFinite, Runs, Updates} from './types';

export interface Model {
  run: string;
  model: string;
}

export interface Held {
  epoch: number;
  frames: number;
  series: number;
}

export interface WantedHistory {
  series: number[];
  from: number;
  /** The frame before which to stop. */
  to?: number;
  /** How many entries can be shown; if there are more frames, neighbours are merged. */
  most?: number;
  /** Steps of the bins that are held already. */
  unit?: number;
}

export interface Answers {
  runs: (signal?: AbortSignal) => Promise<Runs>;
  /** What is new for a client that holds `held`; `{epoch: -1, frames: 0, series: 0}` for everything. */
  updates: (model: Model, held: Held, signal?: AbortSignal) => Promise<Updates>;
  graph: (model: Model, graph: number, signal?: AbortSignal) => Promise<ModuleGraph>;
  /** Where the nodes inside call `inside` stand; null is the top. */
  layout: (model: Model, graph: number, inside: number | null, signal?: AbortSignal) => Promise<Layout>;
  /** Frames `from` and later of each of `series` that has them. */
  history: (model: Model, wanted: WantedHistory, signal?: AbortSignal) => Promise<History>;
  /** The statistics of every series at one frame. */
  frame: (model: Model, frame: number, signal?: AbortSignal) => Promise<FrameStatistics>;
  /** Where there is NaN or infinity, as far as that is new for a client that holds so many frames of an epoch. */
  nonfinite: (model: Model, held: Pick<Held, 'epoch' | 'frames'>, signal?: AbortSignal) => Promise<NonFinite>;
}
