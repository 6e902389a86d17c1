/** Copies numbers of a tensor as text, and pastes numbers into an input. */

import {forJson, tableFrom, textOf} from '../../flow/clipboard';
import {cellOf, flatPlace} from '../../flow/maps';
import {spanOfElement} from '../../flow/region';
import {wholeNumber} from '../../numberText';
import {edit, leadOf, problem, state} from './state';
import {placeIn} from './paintMaps';
import type {Element, Maps, TensorFacts} from '../../flow/types';

/** Numbers that one paste may set: a request has 64 KiB. */
const MOST_PASTED = 4096;

/** The numbers in a region, as text. Null if it is on no map that is shown. */
export function copyRegion(facts: TensorFacts, maps: Maps, region: Element): string | null {
  const span = spanOfElement(facts.shape, region);
  const first = region.map((part) => (part === null ? 0 : typeof part === 'number' ? part : part[0]));
  const at = cellOf(facts.shape, leadOf(facts), first);
  if (at === null) return null;
  const range = ([start, stop]: readonly [number, number]) => [...Array(stop - start).keys()].map((i) => start + i);
  return textOf(range(span.rows).map((row) => range(span.columns).map((column) => maps.values[placeIn(maps, {map: at.map, row, column})]!)));
}

/** Sets the elements from `at` on, along the last two dimensions, to the numbers in `text`. What does not fit is left out. */
export function pasteAt(facts: TensorFacts, text: string, at: readonly number[] | null): void {
  const table = tableFrom(text);
  if (!state.value!.inputs.includes(facts.name)) return complain(`${facts.name} is computed by the model. Paste into an input: ${state.value!.inputs.join(', ')}.`);
  if (table === null || at === null) return complain('What was pasted is no table of numbers. Copy rows of numbers that are separated by tabs, commas or blanks.');
  const [rows, columns] = facts.shape.length > 1 ? facts.shape.slice(-2) : [1, facts.shape[0] ?? 1];
  const last = facts.shape.length - 1;
  const [top, left] = facts.shape.length > 1 ? at.slice(-2) : [0, at[0] ?? 0];
  const [places, values]: [number[], (number | string)[]] = [[], []];
  table.slice(0, rows! - top!).forEach((row, i) =>
    row.slice(0, columns! - left!).forEach((value, j) => {
      const element = at.map((index, dim) => (dim === last ? index + j : dim === last - 1 ? index + i : index));
      places.push(flatPlace(facts.shape, element));
      values.push(forJson(value));
    }),
  );
  if (places.length > MOST_PASTED) return complain(`${wholeNumber(places.length)} numbers are too many for one paste; at most ${wholeNumber(MOST_PASTED)} are pasted.`);
  edit({kind: 'cells', tensor: facts.name, places, values});
}

function complain(sentence: string): void {
  problem.value = sentence;
}
