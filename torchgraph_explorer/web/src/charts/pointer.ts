/** The pointer on a strip: shares the step under it with all strips, tells about it, and chooses it. */

import {batch, type ReadonlySignal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useEffect} from 'preact/hooks';

import type {SeriesHistory} from '../api/types';
import {stepToChoose} from '../steps';
import {entriesBeside} from './columns';
import {entryOf, mergedText, nonfiniteOf} from '../history';
import type {Box} from './layout';
import type {Scene} from './scene';
import type {Setting} from './setting';
import {frameLabel} from './timeAxis';
import type {TipContent} from './Tip';
import {rowAtHeight, tipFacts} from './tipFacts';

type Handlers = Pick<JSX.HTMLAttributes<HTMLDivElement>, 'onPointerMove' | 'onPointerDown' | 'onPointerLeave'>;

interface Pointed {
  box: RefObject<HTMLElement>;
  scene: ReadonlySignal<Scene | null>;
  /** Where the frame on show is looked up. */
  chosen: ReadonlySignal<SeriesHistory | null>;
  setting: Setting;
}

/** Handlers for a strip. Dragging scrubs through the steps. */
export function usePointer({box, scene, chosen, setting}: Pointed): Handlers {
  const leave = (): void => {
    setting.pointed.value = null;
    setting.tip.value = null;
  };
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
      if (frame !== null && event.buttons === 1) choose(setting, frame);
      batch(() => {
        setting.pointed.value = frame === null ? null : (setting.frames.value.steps[frame] ?? null);
        setting.tip.value = tipAt({scene: shown, chosen: chosen.value ?? shown.history, frame, ...place, event}, setting);
      });
    },
    onPointerDown(event) {
      const shown = scene.value;
      const frame = shown === null || event.button !== 0 ? null : frameAt(placeOf(event).x, shown);
      if (frame !== null) choose(setting, frame);
    },
    onPointerLeave: leave,
  };
}

function choose({frames, choose: show}: Setting, frame: number): void {
  show(stepToChoose(frames.value.steps, frame));
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

interface Pointing {
  scene: Scene;
  chosen: SeriesHistory;
  /** The frame under the pointer, and where that is in the strip. */
  frame: number | null;
  x: number;
  y: number;
  event: PointerEvent;
}

/** What the tooltip says. Over the bars that is about the step on show. */
function tipAt({scene, chosen, frame, x, y, event}: Pointing, setting: Setting): TipContent | null {
  const {plot, slice} = scene.layout;
  const isOverBars = x >= slice.x;
  const about = isOverBars ? setting.frame.value : frame;
  if (about === null) return null;
  const frames = setting.frames.value;
  const hasRows = isOverBars || scene.content.mode === 'heat';
  const row = hasRows ? rowAtHeight(y, plot, scene.grid.rows) : null;
  const told = isOverBars ? {...scene, history: chosen} : scene;
  const merged = mergedText(told.history, entryOf(told.history, about), frames.steps);
  const title = merged ?? frameLabel(frames, about, setting.clockName.value);
  return {x: event.clientX, y: event.clientY, title, facts: tipFacts(told, about, row, frames.steps)};
}
