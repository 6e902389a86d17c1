/** Ranks the calls of a graph against what was typed. */

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

/**
 * The best matches first, at most `most`. Every word typed must occur, in the name or the class; only where nothing matches
 * so, it is enough that a word's letters occur in order. Exact and last-part matches stand before the others, short names
 * before long ones.
 */
export function search<T extends Searchable>(items: readonly T[], typed: string, most = 50): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items.slice(0, most);
  const matches = items.flatMap((item) => matchOf(item, words) ?? []);
  const strict = matches.filter(({isLoose}) => !isLoose);
  const best = strict.length > 0 ? strict : matches;
  return best.sort((a, b) => b.score - a.score).slice(0, most).map(({item}) => item);
}

const LOOSE = 20;
const CLASS_MALUS = 5;

function matchOf<T extends Searchable>(item: T, words: readonly string[]): Match<T> | null {
  const [name, className] = [item.name.toLowerCase(), item.className.toLowerCase()];
  const scores = words.map((word) => Math.max(scoreWord(name, word), scoreWord(className, word) - CLASS_MALUS));
  if (scores.some((score) => score <= 0)) return null;
  const score = scores.reduce((sum, one) => sum + one, -name.length / 100);
  return {item, score, isLoose: scores.some((one) => one <= LOOSE)};
}

/** How well `word` matches `text`, both lower case: 0 not at all, 100 exactly. */
function scoreWord(text: string, word: string): number {
  if (text === word) return 100;
  if (text.endsWith(`.${word}`)) return 90;
  const found = text.lastIndexOf(word);
  if (found >= 0) return startsPart(text, found) ? 80 : 60;
  return inOrder(text, word) ? LOOSE : 0;
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
