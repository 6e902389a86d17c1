/** How wide an element is, and whether it can be seen or nearly so, as signals. */

import {batch, signal, type ReadonlySignal} from '@preact/signals';
import type {RefObject} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';

/** What is this near is painted already. */
const MARGINS: IntersectionObserverInit & {scrollMargin: string} = {rootMargin: '120px', scrollMargin: '120px'};

export interface View {
  /** Whole CSS pixels; 0 while the element is hidden. */
  width: ReadonlySignal<number>;
  isVisible: ReadonlySignal<boolean>;
}

/** Follows an element from its mounting to its removal; it may be created hidden and shown later. */
export function useView(element: RefObject<Element>): View {
  const view = useMemo(() => ({width: signal(0), isVisible: signal(false)}), []);
  useEffect(() => {
    const resize = new ResizeObserver(([entry]) => (view.width.value = Math.floor(entry!.contentRect.width)));
    const sight = new IntersectionObserver((entries) => (view.isVisible.value = entries.at(-1)!.isIntersecting), MARGINS);
    resize.observe(element.current!);
    sight.observe(element.current!);
    return () => {
      resize.disconnect();
      sight.disconnect();
    };
  }, []);
  return view;
}

/** Whether an element is in sight or will be soon. */
export interface Nearness {
  isNear: ReadonlySignal<boolean>;
  /** Pixels that it had when it was last near; null before. */
  height: ReadonlySignal<number | null>;
}

/** Of the height of the window, and of each box that scrolls: so far from sight an element is still near. */
const NEAR = '60%';

/** Follows whether an element is near, so that what is in it is made only then. It begins far away. */
export function useNearness(element: RefObject<Element>): Nearness {
  const nearness = useMemo(() => ({isNear: signal(false), height: signal<number | null>(null)}), []);
  useEffect(() => {
    const take = ({isIntersecting, boundingClientRect}: IntersectionObserverEntry): void =>
      batch(() => {
        if (!isIntersecting && nearness.isNear.value) nearness.height.value = boundingClientRect.height;
        nearness.isNear.value = isIntersecting;
      });
    // A root margin alone does not reach into a box that scrolls; browsers without a scroll margin begin a little later.
    const wanted: IntersectionObserverInit & {scrollMargin: string} = {rootMargin: NEAR, scrollMargin: NEAR};
    const sight = new IntersectionObserver((entries) => take(entries.at(-1)!), wanted);
    sight.observe(element.current!);
    return () => sight.disconnect();
  }, []);
  return nearness;
}
