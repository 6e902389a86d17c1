/** Of several requests for the same thing, only the last one's answer counts. */

import {isAbort, mayPass, RETRY_MS} from './errors';

export interface Latest {
  /** Aborts what is under way and starts `request`; `then` or `fail` is called unless it is aborted in turn. */
  start: <T>(request: (signal: AbortSignal) => Promise<T>, then: (answer: T) => void, fail: (cause: unknown) => void) => void;
  /** As `start`, and again some seconds after a failure that may pass; `fail` hears of each. */
  insist: Latest['start'];
  abort: () => void;
}

/** Makes one request at a time. The answer to an aborted one is dropped, even if it comes. */
export function latest(): Latest {
  let current: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const abort = (): void => {
    clearTimeout(timer);
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
  const insist: Latest['start'] = (request, then, fail) => {
    start(request, then, (cause) => {
      fail(cause);
      if (mayPass(cause)) timer = setTimeout(() => insist(request, then, fail), RETRY_MS);
    });
  };
  return {start, insist, abort};
}
