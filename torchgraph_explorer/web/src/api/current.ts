/** Keeps what is on show up to date: fetches it once when something else is wanted, and again after a failure. */

import {RETRY_MS} from './errors';
import {latest} from './latest';

interface Identity {
  /** What is asked for. The answer for another key is never shown: its request is aborted. */
  key: string;
  /** Changes when there is news under the same key. The answer under way is shown first, else frequent news would show nothing. */
  version: unknown;
}

/** What belongs on show. */
export interface Wanted<T> extends Identity {
  fetch: (signal: AbortSignal) => Promise<T>;
  show: (answer: T) => void;
}

/** Returns how to say what is wanted; null is nothing. `fail` hears why a request is going to be repeated. */
export function keepCurrent<T>(fail: (cause: unknown) => void): (wanted: Wanted<T> | null) => void {
  const request = latest();
  let newest: Wanted<T> | null = null;
  let asked: Wanted<T> | null = null; // on show, under way, or to be repeated
  let isUnderWay = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const ask = (): void => {
    clearTimeout(timer);
    request.abort();
    asked = newest;
    isUnderWay = asked !== null;
    if (asked !== null) request.start(asked.fetch, answered(asked), failed);
  };
  const answered = ({show}: Wanted<T>) => (answer: T): void => {
    isUnderWay = false;
    show(answer);
    if (!isSame(newest, asked)) ask();
  };
  const failed = (cause: unknown): void => {
    isUnderWay = false;
    fail(cause);
    timer = setTimeout(ask, RETRY_MS);
  };

  return (wanted) => {
    newest = wanted;
    const isAwaited = isUnderWay && wanted?.key === asked?.key;
    if (!isAwaited && !isSame(wanted, asked)) ask();
  };
}

function isSame(one: Identity | null, other: Identity | null): boolean {
  return one?.key === other?.key && one?.version === other?.version;
}
