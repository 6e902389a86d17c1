/** The stubs whose lines are shown, since the pointer is on a label of them. */

import {signal} from '@preact/signals';
import type {Signal} from '@preact/signals';

export interface Led {
  /** Key of the scene that they are in. */
  scene: string;
  /** Indices in `ModuleGraph.edges`. */
  edges: ReadonlySet<number>;
}

export const led: Signal<Led | null> = signal(null);
