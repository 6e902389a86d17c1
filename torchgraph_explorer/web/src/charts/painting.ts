/** Canvases that repaint when the signals they show change, while they can be seen. */

import {effect, untracked, type ReadonlySignal} from '@preact/signals';
import type {RefObject} from 'preact';
import {useEffect} from 'preact/hooks';

import {schedule, unschedule} from './animation';
import type {Box} from './layout';

export interface Painting {
  canvas: RefObject<HTMLCanvasElement>;
  isVisible: ReadonlySignal<boolean>;
  /** Reads the signals that the picture depends on. Cheap: what follows from them is worked out in `paint`. */
  watch: () => void;
  /** Does some of what takes long before `area` and `paint`; true when that is done. Left out: nothing does. */
  prepare?: (() => boolean) | undefined;
  /** What the functions read besides signals' values: the canvas is painted anew when that is something else. */
  given: readonly unknown[];
  /** The part of the strip that the canvas covers; null when there is nothing to paint. */
  area: () => Box | null;
  /** Paints in CSS pixels of the strip. */
  paint: (context: CanvasRenderingContext2D) => void;
}

/** Keeps a canvas painted until its component goes. */
export function usePainting({canvas, isVisible, watch, prepare, given, area, paint}: Painting): void {
  useEffect(() => {
    const owner = {};
    const repaint = () => untracked(() => (prepare?.() === false ? true : paintArea(canvas.current, area(), paint)));
    const stop = effect(() => {
      watch();
      if (isVisible.value) schedule(owner, repaint);
    });
    return () => {
      stop();
      unschedule(owner);
    };
  }, given);
}

function paintArea(canvas: HTMLCanvasElement | null, area: Box | null, paint: Painting['paint']): void {
  if (canvas === null || area === null) return;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(area.width * ratio); // also clears it
  canvas.height = Math.round(area.height * ratio);
  Object.assign(canvas.style, {left: `${area.x}px`, width: `${area.width}px`, height: `${area.height}px`});
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, -area.x * ratio, -area.y * ratio);
  paint(context);
}
