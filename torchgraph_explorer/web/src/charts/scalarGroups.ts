/** Scalars grouped by the part of their names before the first `/`. */

export interface ScalarGroup {
  /** Empty for scalars without a prefix, which come first. */
  prefix: string;
  names: string[];
}

/** The groups, and in each the scalars: the losses first, then in the order of first logging. */
export function scalarGroups(names: readonly string[]): ScalarGroup[] {
  const groups = new Map<string, string[]>([['', []]]);
  for (const name of names) {
    const at = name.indexOf('/');
    const prefix = at > 0 ? name.slice(0, at) : '';
    groups.set(prefix, [...(groups.get(prefix) ?? []), name]);
  }
  return [...groups].flatMap(([prefix, own]) => (own.length === 0 ? [] : [{prefix, names: lossesFirst(own)}]));
}

const LOSS = /(^|[/_.\-\s])loss$/i;

function lossesFirst(names: readonly string[]): string[] {
  return [...names.filter((name) => LOSS.test(name)), ...names.filter((name) => !LOSS.test(name))];
}
