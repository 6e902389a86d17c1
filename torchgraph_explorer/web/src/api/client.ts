/** Who answers the viewer, decided once: the page that was exported with its data in it, else the server. */

import {openPage} from './page';
import type {Page} from './page';
import {server} from './server';

export type {Held, Model, WantedHistory} from './answers';
export {ApiError, isAbort, messageOf, UnreachableError} from './errors';

/** The exported page that this is; null where a server is asked. */
export const page: Page | null = openPage();

export const {
  runs: fetchRuns,
  updates: fetchUpdates,
  graph: fetchGraph,
  layout: fetchLayout,
  history: fetchHistory,
  frame: fetchFrame,
  nonfinite: fetchNonFinite,
} = page?.answers ?? server;
