/** Signals and effects of what a component is given, which follow when that is something else. Signals' own hooks keep the first. */

import {computed, useSignal, useSignalEffect, type ReadonlySignal} from '@preact/signals';
import {useLayoutEffect, useMemo} from 'preact/hooks';

/** The computed signal of a function that reads signals and `given`. */
export function useDerived<T>(compute: () => T, given: readonly unknown[]): ReadonlySignal<T> {
  return useMemo(() => computed(compute), given);
}

/** Runs a function when the component is there, and with the next frame after a signal that it reads or `given` has changed. */
export function useReaction(run: () => void, given: readonly unknown[]): void {
  const latest = useSignal(run);
  useLayoutEffect(() => void (latest.value = run), given);
  useSignalEffect(() => latest.value());
}
