/** What is known of one model of one run, but for graphs, histograms and statistics. */

import type {Finished, GraphInfo, NewFrames, SeriesInfo, Session, StepKind} from '../api/types';

export interface ModelData {
  epoch: number;
  session: Session | null;
  /** One entry per frame, as the five below. */
  steps: number[];
  /** Seconds since the epoch of the clock. */
  times: number[];
  clock: (number | null)[];
  graphIds: (number | null)[];
  kindIds: NewFrames['kind'];
  passes: NewFrames['passes'];
  kinds: StepKind[];
  /** Those that made some of the steps, but not all of them: each can be chosen, to see its steps alone. */
  optimizers: string[];
  /** In the order of their ids; ids are valid within the epoch. */
  series: SeriesInfo[];
  graphs: GraphInfo[];
  finished: Finished | null;
  /** Its process has ended without that, as far as is known. */
  stopped: boolean;
  warnings: string[];
}

const RECENT = 20;

/**
 * The graph that most of the last frames have, so that steps which call the model in turn in two ways do not make the drawing
 * flicker; of equals the one seen first. Null while none is known.
 */
export function usualGraph(graphIds: readonly (number | null)[]): number | null {
  const counts = new Map<number, number>();
  for (const id of graphIds.slice(-RECENT)) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
  const ranked = [...counts].sort(([id, count], [otherId, otherCount]) => otherCount - count || id - otherId);
  return ranked[0]?.[0] ?? null;
}

/** The graph with this id, if the model has it. */
export function graphNamed({graphs}: ModelData, wanted: number | null | undefined): GraphInfo | undefined {
  return graphs.find(({graph}) => graph === wanted);
}

/** The graph unless the user chooses one: that of the chosen frame, else the one that the latest frames usually have. */
export function automaticGraph(data: ModelData, chosenFrame: number | null): GraphInfo | null {
  const ofFrame = chosenFrame === null ? null : data.graphIds[chosenFrame];
  return graphNamed(data, ofFrame) ?? graphNamed(data, usualGraph(data.graphIds)) ?? data.graphs.at(-1) ?? null;
}

/** What the record says of what is missing in it, each sentence once. */
export function notesOf({warnings, finished}: ModelData): string[] {
  return [...new Set([...warnings, ...(finished?.notes ?? [])])];
}
