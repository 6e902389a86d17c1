/** How large an element is on the screen. */

import type {RefObject} from 'preact';
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import type {Box} from '../tensors/grid';

/** What makes the element known, and the size inside its border; 0 before it is there. */
export function useSize(): [RefObject<HTMLDivElement>, Box] {
  const ref = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Box>({width: 0, height: 0});
  useLayoutEffect(() => {
    const measure = (): void => {
      const {clientWidth: width, clientHeight: height} = ref.current ?? {clientWidth: 0, clientHeight: 0};
      setSize((before) => (before.width === width && before.height === height ? before : {width, height}));
    };
    const observer = new ResizeObserver(measure);
    if (ref.current !== null) observer.observe(ref.current);
    measure();
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}
