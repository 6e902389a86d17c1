/** Tokens by their words. */

/** A token and its word. */
export type Found = readonly [number, string];

/** What is offered for each: its word, with its number where others have the same one. */
export function offers(found: readonly Found[]): {value: string; number: number}[] {
  const words = found.map(([, word]) => word.trim());
  return found.map(([number], i) => ({number, value: words.filter((word) => word === words[i]).length > 1 ? `${words[i]} #${number}` : words[i]!}));
}

/** The token that a text names, as a word that was found or with its number behind #; or a sentence on what there is. */
export function tokenFrom(text: string, found: readonly Found[]): number | string {
  const numbered = /#\s*(\d+)\s*$/.exec(text);
  if (numbered !== null) return Number(numbered[1]);
  const wanted = text.trim();
  const [first] = found;
  if (first !== undefined && (first[1].trim() === wanted || first[1].trim().toLowerCase() === wanted.toLowerCase())) return first[0];
  const near = offers(found.slice(0, 5)).map(({value}) => `'${value}'`);
  return `No token has the word '${wanted}'. ${near.length > 0 ? `Similar: ${near.join(', ')}.` : 'None contains it.'}`;
}
