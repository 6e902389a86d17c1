/** What strips are shown with, besides their own histories. Strips that are shown together get the same setting. */

import type {ReadonlySignal, Signal} from '@preact/signals';

import type {ChartOptions} from './options';
import type {ScaleKind} from './scale';
import type {FrameTimes, TimeAxis} from './timeAxis';
import type {TipContent} from './Tip';

export interface Setting {
  options: ReadonlySignal<ChartOptions>;
  /** When each frame of the model was. */
  frames: ReadonlySignal<FrameTimes>;
  /** What the second time axis is called; null without one. */
  clockName: ReadonlySignal<string | null>;
  /** The time axis of all strips. */
  axis: ReadonlySignal<TimeAxis>;
  /** The number of the frame on show. */
  frame: ReadonlySignal<number | null>;
  /** The step under the pointer, on all strips at once. Not a signal where strips are of runs with steps of their own. */
  pointed: {value: number | null};
  /** What the tooltip of the strips says. */
  tip: Signal<TipContent | null>;
  /** Shows another step; null follows the latest. */
  choose: (step: number | null) => void;
  /** Hears how many pixels a strip has for its frames. */
  onWidth: (pixels: number) => void;
  /** Hears which scale a strip has; null when the strip goes. */
  onScale: (strip: object, kind: ScaleKind | null) => void;
}
