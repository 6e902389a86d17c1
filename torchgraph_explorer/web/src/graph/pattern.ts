/** Regular expressions that users type. A browser cannot break off a match, so what one may cost is worked out before. */

const LONGEST_TYPED = 200;
/** Letters of a text that are looked at; names are shorter. */
export const LONGEST_TEXT = 200;
/** Ways to match one text that are tried at most: a tenth of a second or two. */
const MOST_WAYS = 2e7;

const SPECIAL = /[\\^$|?*+()[\]{}]/;

/** Whether a text is meant as a regular expression. A dot alone is not: it is part of most names. */
export function isPattern(text: string): boolean {
  return SPECIAL.test(text);
}

export interface Pattern {
  /** Null when it cannot be used. */
  regex: RegExp | null;
  /** Why, as a sentence. */
  problem: string | null;
}

/** The expression, if it is one and can be matched in time against texts of up to `longest` letters. */
export function patternOf(typed: string, flags: string, longest: number): Pattern {
  let regex: RegExp;
  try {
    regex = new RegExp(typed, flags);
  } catch (cause) {
    return refused(`“${typed}” is not a regular expression: ${reasonOf(cause)}.`);
  }
  if (typed.length > LONGEST_TYPED) return refused(`A regular expression has at most ${LONGEST_TYPED} letters; this has ${typed.length}.`);
  if (waysToMatch(typed, Math.min(longest, LONGEST_TEXT)) <= MOST_WAYS) return {regex, problem: null};
  return refused(`“${typed}” could take too long: a repeated group must not repeat something or have alternatives itself.`);
}

function refused(problem: string): Pattern {
  return {regex: null, problem};
}

/** What the browser says of it, without the expression: `Unterminated group`. */
function reasonOf(cause: unknown): string {
  return String(cause instanceof Error ? cause.message : cause).split(': ').at(-1) ?? '';
}

/** What a part of an expression leaves open. */
interface Choices {
  /** How many of its parts may be of several lengths. */
  lengths: number;
  /** In how many ways its alternatives can be taken. */
  alternatives: number;
}

const ONE: Choices = {lengths: 0, alternatives: 1};

/**
 * At most so many ways there are to match a valid expression to a text of so many letters, from any letter on: how the text is
 * split among the parts that may be of several lengths, times the ways through the alternatives.
 */
export function waysToMatch(pattern: string, letters: number): number {
  const {lengths, alternatives} = new Reader(pattern).alternation();
  const parts = lengths + 1; // what stands before the match is one, too
  let ways = alternatives;
  for (let i = 1; i <= parts && ways <= MOST_WAYS; i++) ways *= (letters + i) / i;
  return ways;
}

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  alternation(): Choices {
    let all = this.#sequence();
    while (this.#take('|')) {
      const next = this.#sequence();
      all = {lengths: Math.max(all.lengths, next.lengths), alternatives: all.alternatives + next.alternatives};
    }
    return all;
  }

  #sequence(): Choices {
    let all = ONE;
    while (this.#at < this.text.length && !'|)'.includes(this.text[this.#at] as string)) all = product(all, this.#term());
    return all;
  }

  #term(): Choices {
    const atom = this.#atom();
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(this.text.slice(this.#at));
    if (found === null) return atom;
    this.#at += found[0].length;
    return repeated(atom, ...timesOf(found));
  }

  #atom(): Choices {
    if (this.#take('(')) {
      this.#at += /^\?(?:[:=!]|<[=!]|<\w+>)/.exec(this.text.slice(this.#at))?.[0].length ?? 0;
      const inner = this.alternation();
      this.#take(')');
      return inner;
    }
    if (this.#take('[')) {
      while (this.#at < this.text.length && !this.#take(']')) this.#letter();
    } else this.#letter();
    return ONE;
  }

  #letter(): void {
    this.#at += this.text[this.#at] === '\\' ? 2 : 1;
  }

  #take(letter: string): boolean {
    const isThere = this.text[this.#at] === letter;
    if (isThere) this.#at++;
    return isThere;
  }
}

function product(one: Choices, other: Choices): Choices {
  return {lengths: one.lengths + other.lengths, alternatives: one.alternatives * other.alternatives};
}

/** How often a quantifier lets something occur. */
function timesOf([quantifier, least, comma, most]: RegExpExecArray): [least: number, most: number] {
  if (least === undefined) return [quantifier.startsWith('+') ? 1 : 0, quantifier.startsWith('?') ? 1 : Infinity];
  return [Number(least), comma === '' ? Number(least) : most === '' ? Infinity : Number(most)];
}

function repeated(one: Choices, least: number, most: number): Choices {
  const isFixed = one.lengths === 0 && one.alternatives === 1;
  if (isFixed) return least === most ? ONE : most === 1 ? {lengths: 0, alternatives: 2} : {lengths: 1, alternatives: 1};
  if (most === Infinity) return {lengths: Infinity, alternatives: Infinity};
  const alternatives = one.alternatives ** most * (most - least + 1);
  return {lengths: one.lengths * most, alternatives};
}
