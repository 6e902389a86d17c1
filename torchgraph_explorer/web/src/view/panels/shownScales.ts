/** Which scales the charts on show have, where the data choose them. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal} from '@preact/signals';

import type {ScaleKind} from '../../charts/scale';

const shown = signal<ReadonlyMap<object, ScaleKind>>(new Map());

/** Says what scale a chart has; null when it goes. */
export function tellScale(chart: object, kind: ScaleKind | null): void {
  const before = shown.peek();
  if ((before.get(chart) ?? null) === kind) return;
  const now = new Map(before);
  if (kind === null) now.delete(chart);
  else now.set(chart, kind);
  shown.value = now;
}

/** `mixed` where charts differ; null without any. */
export const scalesOnShow: ReadonlySignal<ScaleKind | 'mixed' | null> = computed(() => {
  const [kind, another] = new Set(shown.value.values());
  return another === undefined ? (kind ?? null) : 'mixed';
});
