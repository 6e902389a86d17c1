/** How wide an element is and whether it can be seen, as signals. */

import {signal, type ReadonlySignal} from '@preact/signals';
import type {RefObject} from 'preact';
import {useEffect, useMemo} from 'preact/hooks';

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
    const sight = new IntersectionObserver((entries) => (view.isVisible.value = entries.at(-1)!.isIntersecting), {rootMargin: '120px'});
    resize.observe(element.current!);
    sight.observe(element.current!);
    return () => {
      resize.disconnect();
      sight.disconnect();
    };
  }, []);
  return view;
}
