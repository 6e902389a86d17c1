/** Names of runs, shortened to what differs. */

interface Named {
  run: string;
  model: string;
}

/** What tells each of the runs from the others: the part of its name, its model, or both. */
export function shortNames(all: readonly Named[]): string[] {
  const runs = shortened(all.map(({run}) => run));
  const models = all.map(({model}) => model);
  if (areEqual(models)) return runs;
  if (areEqual(all.map(({run}) => run))) return models;
  return all.map((_, i) => `${runs[i]} · ${models[i]}`);
}

/** Names without what all of them have in common at their beginning, end and, if it is long, in the middle; whole words only, and at least one word of each stays. */
export function shortened(names: readonly string[]): string[] {
  if (names.length < 2 || areEqual(names)) return [...names];
  const words = names.map(wordsOf);
  const most = Math.min(...words.map(({length}) => length)) - 1;
  const isShared = (at: (of: readonly string[]) => string | undefined): boolean => words.every((of) => at(of) === at(words[0]!));
  let front = 0;
  while (front < most && isShared((of) => of[front])) front += 1;
  let back = 0;
  while (back < most - front && isShared((of) => of[of.length - 1 - back])) back += 1;
  const cores = words.map((of) => of.slice(front, of.length - back));
  const gap = sharedMiddle(cores);
  return cores.map((of, i) => (gap === null ? of.join('') : `${of.slice(0, gap.from).join('')}…${of.slice(gap.to).join('')}`).replace(EDGES, '') || names[i]!);
}

/** What is shorter than this is not worth its dots. */
const LEAST_LETTERS = 12;

/** The longest stretch of words that all have at the same place, without the last word before they differ again: that says what differs. */
function sharedMiddle(all: readonly (readonly string[])[]): {from: number; to: number} | null {
  const [first = []] = all;
  if (all.some(({length}) => length !== first.length)) return null;
  const isShared = first.map((word, at) => all.every((of) => of[at] === word));
  const starts = isShared.flatMap((is, at) => (is && at > 0 && isShared[at - 1] === false ? [at] : []));
  const stretches = starts.flatMap((from) => {
    const end = isShared.indexOf(false, from);
    return end < 0 ? [] : [{from, to: end - 2}];
  });
  const lengthOf = ({from, to}: {from: number; to: number}): number => first.slice(from, Math.max(from, to)).join('').length;
  const longest = stretches.reduce<{from: number; to: number} | null>((best, one) => (best === null || lengthOf(one) > lengthOf(best) ? one : best), null);
  return longest !== null && lengthOf(longest) >= LEAST_LETTERS ? longest : null;
}

const EDGES = /^[\s/_.,;:-]+|[\s/_,;:-]+$/g;

/** `lr=0.1_seed=3` as `lr=0.1`, `_`, `seed=3`: a number is not torn apart. */
function wordsOf(name: string): string[] {
  return name.match(/[^\s/_,;:-]+|[\s/_,;:-]+/g) ?? [];
}

function areEqual(texts: readonly string[]): boolean {
  return texts.every((text) => text === texts[0]);
}
