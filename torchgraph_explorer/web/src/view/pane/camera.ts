/** Pan and zoom of the graph pane. */

import {signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import {select} from 'd3-selection';
import {zoom, zoomIdentity} from 'd3-zoom';
import type {ZoomBehavior} from 'd3-zoom';
import {areaOf, areaToKeep} from '../../graph/geometry';
import type {Area, Box, View} from '../../graph/geometry';

const SMALLEST = 0.02;
const LARGEST = 4;

/** How much is written on the nodes: at a small scale less can be read. */
export type Detail = 'all' | 'names' | 'none';

export interface Camera {
  /** Where it looks, or, while it glides, where it will. */
  view: () => View;
  pane: () => Box;
  /** Looks elsewhere, by our choice. */
  show: (view: View, isSmooth?: boolean) => void;
  /** Goes on from where the user has moved the drawing to. */
  follow: (view: View, isSmooth?: boolean) => void;
  /** Moves the drawing within the pane, now and where it is gliding to: the pane itself has moved on the screen. */
  shift: (x: number, y: number) => void;
  zoomBy: (factor: number) => void;
  /** Has the user moved the drawing since `show`? */
  isMoved: () => boolean;
  detach: () => void;
}

/** The part of the drawing that is in sight, and something around it; null before the first look. */
export const sight: Signal<Area | null> = signal(null);
export const detail: Signal<Detail> = signal<Detail>('all');

/** Lets the pointer move and scale `content` within `svg`. A press on a node does not pan. */
export function attachCamera(svg: SVGSVGElement, content: SVGGElement): Camera {
  let now: View = {k: 1, x: 0, y: 0};
  let target: View | null = null;
  let gliding = 0;
  let isMoved = false;
  const pane = (): Box => ({width: svg.clientWidth, height: svg.clientHeight});
  const stop = (): void => {
    cancelAnimationFrame(gliding);
    target = null;
  };
  const behaviour: ZoomBehavior<SVGSVGElement, unknown> = zoom<SVGSVGElement, unknown>()
    .scaleExtent([SMALLEST, LARGEST])
    .filter((event: MouseEvent) => !(event.type !== 'wheel' && isNode(event.target)) && event.button === 0)
    .on('zoom', ({transform: {k, x, y}, sourceEvent}) => {
      if (sourceEvent) {
        stop();
        isMoved = true;
      }
      now = {k, x, y};
      content.setAttribute('transform', `translate(${x},${y}) scale(${k})`);
      sight.value = areaToKeep(areaOf(pane(), now), sight.peek());
      detail.value = k >= 0.5 ? 'all' : k >= 0.28 ? 'names' : 'none';
    });
  const root = select(svg).call(behaviour).on('dblclick.zoom', null);
  const jump = ({k, x, y}: View): void => behaviour.transform(root, zoomIdentity.translate(x, y).scale(k));
  const follow = (view: View, isSmooth = false): void => {
    stop();
    if (!isSmooth || prefersStill()) return jump(view);
    target = view;
    gliding = glide(now, view, jump, (request) => (request === null ? (target = null) : (gliding = request)));
  };
  return {
    view: () => target ?? now,
    pane,
    show: (view, isSmooth) => {
      isMoved = false;
      follow(view, isSmooth);
    },
    follow,
    shift: (x, y) => {
      const moved = (view: View): View => ({...view, x: view.x + x, y: view.y + y});
      const goal = target;
      stop();
      jump(moved(now));
      if (goal) follow(moved(goal), true);
    },
    zoomBy: (factor) => {
      stop();
      behaviour.scaleBy(root, factor);
      isMoved = true;
    },
    isMoved: () => isMoved,
    detach: () => {
      stop();
      root.on('.zoom', null);
    },
  };
}

function isNode(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('.node') !== null;
}

function prefersStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

const GLIDE_MS = 220;

/** Moves from one view to another, easing out. Returns the browser's number of the first repaint's request, hands on the later ones, and null at the end. */
function glide(from: View, to: View, show: (view: View) => void, keep: (request: number | null) => void): number {
  const start = performance.now();
  const tick = (time: number): void => {
    const share = Math.min(1, Math.max(0, (time - start) / GLIDE_MS));
    const t = 1 - (1 - share) ** 3;
    const between = (a: number, b: number): number => a + (b - a) * t;
    show({k: between(from.k, to.k), x: between(from.x, to.x), y: between(from.y, to.y)});
    keep(share < 1 ? requestAnimationFrame(tick) : null);
  };
  return requestAnimationFrame(tick);
}
