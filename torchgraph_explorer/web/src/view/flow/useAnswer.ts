/** An answer that is asked for again when what it depends on changes. */

import {useEffect, useState} from 'preact/hooks';
import {isAbort, messageOf} from '../../api/errors';

export interface Answer<T> {
  value: T | null;
  fault: string | null;
}

/** The answer for `key`. The last one stays until the next is there; null asks nothing, and has none. */
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({value: null, fault: null});
  useEffect(() => {
    if (key === null) {
      setAnswer({value: null, fault: null});
      return undefined;
    }
    const stop = new AbortController();
    ask(stop.signal).then(
      (value) => stop.signal.aborted || setAnswer({value, fault: null}),
      (cause: unknown) => isAbort(cause) || stop.signal.aborted || setAnswer({value: null, fault: messageOf(cause)}),
    );
    return () => stop.abort();
  }, [key]);
  return answer;
}
