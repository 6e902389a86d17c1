/** The pointer on a strip: shares the step under it with all strips, tells about it, and chooses it. */

import {batch, useComputed, type ReadonlySignal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useEffect} from 'preact/hooks';

import {currentFrame, data, hoverFrame} from '../state/store';
import type {Box} from './layout';
import type {Scene} from './scene';
import {chooseFrame} from './stepping';
import {frameFinder, frameLabel} from './timeAxis';
import {rowAtHeight, tipFacts} from './tipFacts';
import {tip} from './Tip';

type Handlers = Pick<JSX.HTMLAttributes<HTMLDivElement>, 'onPointerMove' | 'onPointerDown' | 'onPointerLeave'>;

/** Handlers for a strip. Dragging scrubs through the steps. */
export function usePointer({box, scene}: {box: RefObject<HTMLElement>; scene: ReadonlySignal<Scene | null>}): Handlers {
  const finder = useComputed(() => frameFinder(scene.value?.pixels ?? new Float64Array(0)));
  useEffect(() => leave, []);

  const placeOf = (event: PointerEvent) => {
    const {left, top} = box.current!.getBoundingClientRect();
    return {x: event.clientX - left, y: event.clientY - top};
  };
  const frameAt = (x: number, {layout: {plot}}: Scene) => (isBeside(x, plot) ? null : finder.value.nearest(x - plot.x));

  return {
    onPointerMove(event) {
      const shown = scene.value;
      if (shown === null) return;
      const place = placeOf(event);
      const frame = frameAt(place.x, shown);
      if (frame !== null && event.buttons === 1) chooseFrame(frame);
      batch(() => {
        hoverFrame.value = frame;
        tell(event, shown, {frame, ...place});
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

function isBeside(x: number, {x: left, width}: Box): boolean {
  return x < left || x >= left + width;
}

interface Place {
  frame: number | null;
  x: number;
  y: number;
}

/** Over the bars the tooltip tells about the chosen step. */
function tell({clientX, clientY}: PointerEvent, scene: Scene, {frame, x, y}: Place): void {
  const {plot, slice} = scene.layout;
  const isOverBars = x >= slice.x;
  const about = isOverBars ? currentFrame.value : frame;
  if (about === null || data.value === null) {
    tip.value = null;
    return;
  }
  const hasRows = isOverBars || scene.content.mode === 'heat';
  const row = hasRows ? rowAtHeight(y, plot, scene.grid.rows) : null;
  const title = frameLabel(data.value, about, data.value.session?.clock ?? null);
  tip.value = {x: clientX, y: clientY, title, facts: tipFacts(scene, about, row)};
}
