/** Keeps what is on show current: fetched when something else is wanted, once, and again after a failure. */

import {latest} from './latest';

const RETRY_MS = 2000;

interface Named {
  /** The answer for another place never wins: the request for it is aborted. */
  place: string;
  /** Differs when the place has news. The answer under way is then shown first, or a place with ever more news would show nothing. */
  version: unknown;
}

/** What belongs on show. */
export interface Wanted<T> extends Named {
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
    const isAwaited = isUnderWay && wanted?.place === asked?.place;
    if (!isAwaited && !isSame(wanted, asked)) ask();
  };
}

function isSame(one: Named | null, other: Named | null): boolean {
  return one?.place === other?.place && one?.version === other?.version;
}
