/** An iframe does not tell its page whether it could be loaded: the browser's timings do, and the connection. */

import {effect} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import * as server from '../state/runs';

/** Says of each page below `path` whether it failed: it was answered by a proxy that reached no server, or not at all. */
export function useFailures(path: string, onAnswer: (isFailed: boolean) => void): void {
  const answer = useRef(onAnswer);
  answer.current = onAnswer;
  useEffect(() => {
    let isTold = false;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as PerformanceResourceTiming[]) {
        if (entry.initiatorType !== 'iframe' || !entry.name.includes(path)) continue;
        answer.current(isFailure(entry.responseStatus, isTold));
        isTold ||= entry.responseStatus === 200;
      }
    });
    observer.observe({type: 'resource'});
    return () => observer.disconnect();
  }, []);
}

/** Without an answer the status is 0. So it is of all pages in a browser that does not tell it: then none `isTold`. */
export function isFailure(status: number, isTold: boolean): boolean {
  return [502, 503, 504].includes(status) || (status === 0 && isTold);
}

/** Calls `onBack` when the server answers again. */
export function useReconnection(onBack: () => void): void {
  const back = useRef(onBack);
  back.current = onBack;
  useEffect(() => {
    let before = server.connection.peek();
    return effect(() => {
      const now = server.connection.value;
      if (before === 'retrying' && now !== 'retrying') queueMicrotask(() => back.current());
      before = now;
    });
  }, []);
}
