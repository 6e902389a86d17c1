/**
 * Takes the place of d3-transition, which d3-zoom imports (vite.config.ts): the graph is never zoomed by a transition of d3, so there is
 * none to interrupt. The library would be 6 kB of each exported page.
 */

import {selection} from 'd3-selection';

export function interrupt(): void {}

Object.assign(selection.prototype, {
  interrupt(this: unknown) {
    return this;
  },
});
