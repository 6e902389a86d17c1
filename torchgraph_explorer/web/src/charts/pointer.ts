/** The pointer on a strip: shares the step under it with all strips, tells about it, and chooses it. */

import {batch, type ReadonlySignal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useEffect} from 'preact/hooks';

import type {SeriesHistory} from '../api/types';
import {currentFrame, data, hoverFrame} from '../view/state/choices';
import {entriesBeside} from './columns';
import {entryOf, mergedText, nonfiniteOf} from '../history';
import type {Box} from './layout';
import type {Scene} from './scene';
import {chooseFrame} from './stepping';
import {frameLabel} from './timeAxis';
import {rowAtHeight, tipFacts} from './tipFacts';
import {tip} from './Tip';

type Handlers = Pick<JSX.HTMLAttributes<HTMLDivElement>, 'onPointerMove' | 'onPointerDown' | 'onPointerLeave'>;

interface Pointed {
  box: RefObject<HTMLElement>;
  scene: ReadonlySignal<Scene | null>;
  /** Where the chosen frame is looked up. */
  chosen: ReadonlySignal<SeriesHistory | null>;
}

/** Handlers for a strip. Dragging scrubs through the steps. */
export function usePointer({box, scene, chosen}: Pointed): Handlers {
  useEffect(() => leave, []);

  const placeOf = (event: PointerEvent) => {
    const {left, top} = box.current!.getBoundingClientRect();
    return {x: event.clientX - left, y: event.clientY - top};
  };

  return {
    onPointerMove(event) {
      const shown = scene.value;
      if (shown === null) return;
      const place = placeOf(event);
      const frame = frameAt(place.x, shown);
      if (frame !== null && event.buttons === 1) chooseFrame(frame);
      batch(() => {
        hoverFrame.value = frame;
        tell(event, shown, {chosen: chosen.value ?? shown.history, frame, ...place});
      });
    },
    onPointerDown(event) {
      const shown = scene.value;
      const frame = shown === null || event.button !== 0 ? null : frameAt(placeOf(event).x, shown);
      if (frame !== null) chooseFrame(frame);
    },
    onPointerLeave: leave,
  };
}

function leave(): void {
  hoverFrame.value = null;
  tip.value = null;
}

/** The frame that a press at a pixel of the strip chooses: of a column with something that was not finite, that frame. */
function frameAt(x: number, {layout: {plot}, places, history}: Scene): number | null {
  const nearest = isBeside(x, plot) ? null : places.finder.nearest(x - plot.x);
  return nearest === null ? null : (badFrame(history, entriesBeside(history, nearest, places.columns)) ?? nearest);
}

function badFrame(history: SeriesHistory, entries: readonly number[]): number | null {
  const entry = entries.find((one) => nonfiniteOf(history, one) > 0);
  return entry === undefined ? null : history.bad[entry]!;
}

function isBeside(x: number, {x: left, width}: Box): boolean {
  return x < left || x >= left + width;
}

interface Place {
  chosen: SeriesHistory;
  frame: number | null;
  x: number;
  y: number;
}

/** Over the bars the tooltip tells about the chosen step. */
function tell({clientX, clientY}: PointerEvent, scene: Scene, {chosen, frame, x, y}: Place): void {
  const {plot, slice} = scene.layout;
  const isOverBars = x >= slice.x;
  const about = isOverBars ? currentFrame.value : frame;
  if (about === null || data.value === null) {
    tip.value = null;
    return;
  }
  const hasRows = isOverBars || scene.content.mode === 'heat';
  const row = hasRows ? rowAtHeight(y, plot, scene.grid.rows) : null;
  const told = isOverBars ? {...scene, history: chosen} : scene;
  const merged = mergedText(told.history, entryOf(told.history, about), data.value.steps);
  const title = merged ?? frameLabel(data.value, about, data.value.session?.clock ?? null);
  tip.value = {x: clientX, y: clientY, title, facts: tipFacts(told, about, row, data.value.steps)};
}
