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

/** Names without what all of them begin and end with; whole words only, and at least one word of each stays. */
export function shortened(names: readonly string[]): string[] {
  if (names.length < 2 || areEqual(names)) return [...names];
  const words = names.map(wordsOf);
  const most = Math.min(...words.map(({length}) => length)) - 1;
  const isShared = (at: (of: readonly string[]) => string | undefined): boolean => words.every((of) => at(of) === at(words[0]!));
  let front = 0;
  while (front < most && isShared((of) => of[front])) front += 1;
  let back = 0;
  while (back < most - front && isShared((of) => of[of.length - 1 - back])) back += 1;
  return words.map((of, i) => of.slice(front, of.length - back).join('').replace(EDGES, '') || names[i]!);
}

const EDGES = /^[\s/_.,;:-]+|[\s/_,;:-]+$/g;

/** `lr=0.1_seed=3` as `lr=0.1`, `_`, `seed=3`: a number is not torn apart. */
function wordsOf(name: string): string[] {
  return name.match(/[^\s/_,;:-]+|[\s/_,;:-]+/g) ?? [];
}

function areEqual(texts: readonly string[]): boolean {
  return texts.every((text) => text === texts[0]);
}
