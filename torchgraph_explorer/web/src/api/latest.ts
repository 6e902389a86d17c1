/** Of several requests for the same place, only the last one's answer counts. */

import {isAbort} from './errors';

export interface Latest {
  /** Aborts what is under way and starts `request`; `then` or `fail` is called unless it is aborted in turn. */
  start: <T>(request: (signal: AbortSignal) => Promise<T>, then: (answer: T) => void, fail: (cause: unknown) => void) => void;
  abort: () => void;
}

/** A place for one request at a time: the answer to one that was aborted is dropped, however it comes. */
export function latest(): Latest {
  let current: AbortController | null = null;
  const abort = (): void => {
    current?.abort();
    current = null;
  };
  const start: Latest['start'] = (request, then, fail) => {
    abort();
    const mine = (current = new AbortController());
    const isCurrent = (): boolean => current === mine && !mine.signal.aborted;
    request(mine.signal).then(
      (answer) => isCurrent() && then(answer),
      (cause: unknown) => isCurrent() && !isAbort(cause) && fail(cause),
    );
  };
  return {start, abort};
}
