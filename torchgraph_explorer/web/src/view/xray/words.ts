/** What rows and columns are called. */

import {wholeNumber} from '../../numberText';
import type {Xray} from '../../xray/matrix';
import type {XrayRow} from '../../xray/tree';

/** `encoder.0`, and for a folded module how many it stands for. */
export function moduleText({module, isFolded, rows}: XrayRow): string {
  const name = module.name === '' ? module.label : module.name;
  return isFolded ? `${name} and what is inside (${rows.length} modules)` : name;
}

/** `412`, or `400–415` for a column of several steps. */
export function stepsText({first, last}: Pick<Xray, 'first' | 'last'>, column: number): string {
  const [from, to] = [first[column] ?? 0, last[column] ?? 0];
  return from === to ? wholeNumber(from) : `${wholeNumber(from)}–${wholeNumber(to)}`;
}
