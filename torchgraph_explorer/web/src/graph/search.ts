/** Ranks the calls of a graph against what was typed. */

import {isPattern, LONGEST_TEXT, patternOf} from './pattern';

export interface Searchable {
  /** Qualified name. */
  name: string;
  className: string;
}

interface Match<T> {
  item: T;
  score: number;
  /** Some word's letters only occur in order. */
  isLoose: boolean;
}

export interface SearchResult<T> {
  items: T[];
  /** Why a regular expression was not used, as a sentence. */
  problem: string | null;
}

/**
 * The best matches first, at most `most`. Every word typed must occur, in the name or the class; only where nothing matches
 * so, it is enough that a word's letters occur in order. Exact and last-part matches stand before the others, short names
 * before long ones.
 *
 * A word with one of `\ ^ $ | ? * + ( ) [ ] { }` is a regular expression. It is of names, and of classes where no name matches:
 * `conv2` would else find every `Conv2d`. It is case-sensitive if it has capitals. One that cannot be used is plain text.
 */
export function search<T extends Searchable>(items: readonly T[], typed: string, most = 50): SearchResult<T> {
  const parts = typed.split(/\s+/).filter(Boolean);
  if (parts.length === 0) return {items: items.slice(0, most), problem: null};
  const longest = items.reduce((length, {name, className}) => Math.max(length, name.length, className.length), 0);
  const words = parts.map((part) => wordOf(part, longest));
  const refusal = words.find(({problem}) => problem !== null)?.problem ?? null;
  const names = within(MOST_MS, items, (item) => matchOf(item, words, true));
  const matches = names?.length === 0 ? within(MOST_MS, items, (item) => matchOf(item, words)) : names;
  if (matches !== null) return {items: best(matches, most), problem: refusal === null ? null : `${refusal} ${AS_PLAIN_TEXT}`};
  const plain = parts.map((part) => plainWord(part));
  const found = items.flatMap((item) => matchOf(item, plain) ?? []);
  return {items: best(found, most), problem: `“${typed}” took too long on this model. ${AS_PLAIN_TEXT}`};
}

const AS_PLAIN_TEXT = 'It was searched for as plain text.';
const MOST_MS = 150;
const LOOSE = 20;
const CLASS_MALUS = 5;

/** A word that was typed: how well it matches a text, from 0, not at all, to 100, exactly. */
interface Word {
  score: (text: string) => number;
  isPattern: boolean;
  problem: string | null;
}

function wordOf(part: string, longest: number): Word {
  if (!isPattern(part)) return plainWord(part);
  const hasCapitals = /[A-Z]/.test(part.replace(/\\./g, ''));
  const {regex, problem} = patternOf(part, hasCapitals ? '' : 'i', longest);
  return regex === null ? {...plainWord(part), problem} : {score: (text) => scorePattern(text, regex), isPattern: true, problem};
}

function plainWord(part: string): Word {
  const word = part.toLowerCase();
  return {score: (text) => scoreWord(text.toLowerCase(), word), isPattern: false, problem: null};
}

/** What `act` gives of every item, but for null; null if that takes longer than so many milliseconds. */
function within<T, Found>(milliseconds: number, items: readonly T[], act: (item: T) => Found | null): Found[] | null {
  const until = performance.now() + milliseconds;
  const found: Found[] = [];
  for (const item of items) {
    const one = act(item);
    if (one !== null) found.push(one);
    if (performance.now() > until) return null;
  }
  return found;
}

function best<T>(matches: Match<T>[], most: number): T[] {
  const strict = matches.filter(({isLoose}) => !isLoose);
  return (strict.length > 0 ? strict : matches)
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({item}) => item);
}

function matchOf<T extends Searchable>(item: T, words: readonly Word[], isOfNames = false): Match<T> | null {
  const scores = words.map(({score, isPattern: isExpression}) =>
    isExpression && isOfNames ? score(item.name) : Math.max(score(item.name), score(item.className) - CLASS_MALUS),
  );
  if (scores.some((score) => score <= 0)) return null;
  const score = scores.reduce((sum, one) => sum + one, -item.name.length / 100);
  return {item, score, isLoose: scores.some((one) => one <= LOOSE)};
}

function scorePattern(text: string, regex: RegExp): number {
  const found = regex.exec(text.slice(0, LONGEST_TEXT));
  return found === null ? 0 : scorePosition(text, found.index, found[0].length);
}

/** How well `word` matches `text`, both lower case. */
function scoreWord(text: string, word: string): number {
  const found = text === word ? 0 : text.lastIndexOf(word);
  if (found >= 0) return scorePosition(text, found, word.length);
  return inOrder(text, word) ? LOOSE : 0;
}

function scorePosition(text: string, at: number, length: number): number {
  if (length === text.length) return 100;
  if (at > 0 && at + length === text.length && text[at - 1] === '.') return 90;
  return startsPart(text, at) ? 80 : 60;
}

function startsPart(text: string, index: number): boolean {
  return index === 0 || /[._\d]/.test(text[index - 1] as string);
}

function inOrder(text: string, word: string): boolean {
  let index = -1;
  for (const letter of word) {
    index = text.indexOf(letter, index + 1);
    if (index < 0) return false;
  }
  return true;
}
