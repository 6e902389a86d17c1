/** What a node is coloured by, and its text. */

import {lostText} from '../history';
import {formatNumber, wholeNumber} from '../numberText';
import {nonfinite} from '../statistics';
import type {NodeMeasure, Row} from '../statistics';

/** What a node is coloured by: a value on the scale, or one of those that have a look of their own. */
export type NodeState =
  | {kind: 'value'; value: number}
  | {kind: 'zero'}
  /** Some of the tensor's elements are NaN or infinite. */
  | {kind: 'nonfinite'; row: Row}
  /** The tensor has no elements. */
  | {kind: 'empty'};

/** How a row of statistics is shown where nodes are coloured by `measure`. */
export function stateOf(row: Row, measure: NodeMeasure): NodeState {
  const value = measure.of(row);
  if (!measure.isCount && (nonfinite(row) > 0 || Math.abs(value) === Infinity)) return {kind: 'nonfinite', row};
  if (row.count === 0 || Number.isNaN(value)) return {kind: 'empty'};
  return value === 0 ? {kind: 'zero'} : {kind: 'value', value};
}

/** `0.031`; `all 2,048 NaN`; `0.031 of the finite elements; 3 NaN`; `not recorded at this step`. */
export function stateText(state: NodeState | undefined, measure: NodeMeasure): string {
  switch (state?.kind) {
    case undefined:
      return 'not recorded at this step';
    case 'empty':
      return measure.empty ?? 'no elements';
    case 'zero':
      return '0';
    case 'value':
      return formatNumber(state.value);
    case 'nonfinite':
      return nonfiniteText(state.row, measure);
  }
}

function nonfiniteText(row: Row, measure: NodeMeasure): string {
  if (isAll(row)) return lostText(row);
  const value = formatNumber(measure.of(row));
  return nonfinite(row) > 0 ? `${value} of the finite elements; ${countsText(row)}` : value;
}

/** No element is finite, and there are some. */
export function isAll(row: Row): boolean {
  return row.count > 0 && nonfinite(row) >= row.count;
}

/** `3 NaN, 1 +∞`. */
export function countsText({nan, positive_infinity: positive, negative_infinity: negative}: Row): string {
  const kinds = [[nan, 'NaN'], [positive, '+∞'], [negative, '−∞']] as const;
  return kinds.flatMap(([count, what]) => (count > 0 ? [`${wholeNumber(count)} ${what}`] : [])).join(', ');
}
