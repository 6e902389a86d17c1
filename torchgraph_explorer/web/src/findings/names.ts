/** What findings are called, and what names one across reloads and new answers. */

import type {Finding} from '../api/types';
import {counted, stepName, wholeNumber} from '../numberText';

/** `nan@stem#0/weight`; the kind alone for the whole run. The same finding has the same name in every answer. */
export function findingKey({kind, module, call, path}: Pick<Finding, 'kind' | 'module' | 'call' | 'path'>): string {
  if (module === null) return kind;
  return `${kind}@${module}${call === null ? '' : `#${call}`}${path === null ? '' : `/${path}`}`;
}

const TITLES: Record<string, string> = {nan: 'NaN or infinity'};

/** `dead-units` as `Dead units`. */
export function titleOf(kind: string): string {
  const words = kind.replaceAll('-', ' ');
  return TITLES[kind] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** `stage1.relu (call 2), output`. The model itself goes by its class; null is the whole run. */
export function placeText({module, call, path}: Pick<Finding, 'module' | 'call' | 'path'>, className: string): string {
  if (module === null) return 'whole run';
  const which = call === null || call === 0 ? '' : ` (call ${call + 1})`;
  return `${module === '' ? className : module}${which}${path === null ? '' : `, ${path}`}`;
}

/** Where findings of several modules are: `blocks.0–11.fc`, or the first and the last, `encoder … head`. */
export function placesText(places: readonly string[]): string {
  const [first, last] = [places[0] ?? '', places.at(-1) ?? ''];
  const [begin, end] = [first, last].map((place) => place.split(/(\d+)/));
  const different = begin!.flatMap((part, at) => (part === end![at] ? [] : [at]));
  const isNumbered = begin!.length === end!.length && different.length === 1 && different[0]! % 2 === 1;
  if (!isNumbered) return `${first} … ${last}`;
  return begin!.map((part, at) => (at === different[0] ? `${part}–${end![at]}` : part)).join('');
}

/** `since step 12` for what was seen up to the last step that was looked at, else `step 4` or `steps 3–9`. */
export function whenText({step, last_step: last}: Pick<Finding, 'step' | 'last_step'>, latest: number | null): string {
  if (step === last) return stepName(step);
  return latest !== null && last >= latest ? `since ${stepName(step)}` : `steps ${wholeNumber(step)}–${wholeNumber(last)}`;
}

/** `1 finding`, `3 findings`. */
export function countText(count: number): string {
  return counted(count, 'finding');
}

/** A sentence of a rule, in which steps are written as elsewhere on the page: `at step 19,999`. */
export function withStepsApart(text: string): string {
  return text.replace(/\b(steps? )(\d{4,})\b/gi, (_, word: string, step: string) => word + wholeNumber(Number(step)));
}

/** Text with names in backquotes, cut into pieces: every second one is a name. */
export function textPieces(text: string): string[] {
  const pieces = text.split('`');
  if (pieces.length % 2 === 1) return pieces;
  return [...pieces.slice(0, -2), pieces.slice(-2).join('`')]; // a quote that is not closed is a mark like any other
}
