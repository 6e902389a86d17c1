/** An answer of the server that is asked for again when what it depends on changes. */

import {useEffect, useRef, useState} from 'preact/hooks';
import {mayPass, messageOf} from '../api/errors';
import {latest} from '../api/latest';

/** What was asked for; an earlier answer until that has come. */
export interface Answer<T> {
  value: T | null;
  /** Why there is no answer, as a sentence. */
  problem: string | null;
  /** `value` is what was asked for. */
  isCurrent: boolean;
}

/** Earlier answers, by key. */
export interface HeldAnswers<T> {
  get: (key: string) => T | undefined;
  set: (key: string, value: T) => void;
}

const NONE_HELD: {get: (key: string) => undefined; set: (key: string, value: unknown) => void} = {get: () => undefined, set: () => undefined};

/**
 * The answer for `key`, which is asked for again when that changes, and after a failure that may pass; null asks for nothing, and
 * has none. What is `held` is not asked for. While what is asked for grows, `subject` stays: then the answer under way is shown
 * first, else frequent news would show nothing.
 */
export function useAnswer<T>(key: string | null, fetch: (abort: AbortSignal) => Promise<T>, held: HeldAnswers<T> = NONE_HELD, subject: string | null = key): Answer<T> {
  const [request] = useState(latest);
  const underWay = useRef<string | null>(null);
  const [state, setState] = useState<{key: string | null; value: T | null; problem: string | null}>({key: null, value: null, problem: null});
  useEffect(() => {
    if (subject !== null && underWay.current === subject) return undefined;
    request.abort();
    underWay.current = null;
    if (key !== null && key === state.key) return undefined;
    if (key === null) return setState({key, value: null, problem: null});
    const ready = held.get(key);
    if (ready !== undefined) return setState({key, value: ready, problem: null});
    underWay.current = subject;
    request.insist(
      fetch,
      (value) => ((underWay.current = null), held.set(key, value), setState({key, value, problem: null})),
      (cause) => {
        if (!mayPass(cause)) underWay.current = null;
        setState({key, value: null, problem: messageOf(cause)});
      },
    );
    return undefined;
  }, [key, subject !== key && state.key]);
  useEffect(() => () => request.abort(), []);
  const ready = key === null || key === state.key ? undefined : held.get(key); // it need not wait for the effect
  if (ready !== undefined) return {value: ready, problem: null, isCurrent: true};
  return {value: state.value, problem: state.problem, isCurrent: key === state.key};
}
