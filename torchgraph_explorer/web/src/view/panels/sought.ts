/** The tensor that a look is about: its panel scrolls to it, and marks it. */

import {signal} from '@preact/signals';
import type {Signal} from '@preact/signals';
import type {SeriesName} from '../../api/types';

type Place = Pick<SeriesName, 'module' | 'call' | 'role' | 'path'>;

interface Sought {
  name: string;
  /** The panel scrolls once for each look. */
  isReached: boolean;
}

const sought: Signal<Sought | null> = signal(null);

/** Looks for the tensor of a series in the panel that is opened now, or next. */
export function seek(series: Place): void {
  sought.value = {name: nameOf(series), isReached: false};
}

export function isSought(series: Place): boolean {
  return sought.value?.name === nameOf(series);
}

/** True once for each look at that tensor. */
export function isNewlySought(series: Place): boolean {
  const known = sought.value;
  if (known === null || known.isReached || known.name !== nameOf(series)) return false;
  known.isReached = true;
  return true;
}

function nameOf({module, call, role, path}: Place): string {
  return JSON.stringify([module, call, role, path]);
}
