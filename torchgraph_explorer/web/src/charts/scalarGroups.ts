/** Scalars grouped by the part of their names before the first `/`. */

export interface ScalarGroup {
  /** Empty for scalars without a prefix, which come before the others. */
  prefix: string;
  names: string[];
}

/** The groups, those with a loss first; and in each the scalars: the losses first, then in the order of first logging. */
export function scalarGroups(names: readonly string[]): ScalarGroup[] {
  const groups = new Map<string, string[]>([['', []]]);
  for (const name of names) {
    const at = name.indexOf('/');
    const prefix = at > 0 ? name.slice(0, at) : '';
    groups.set(prefix, [...(groups.get(prefix) ?? []), name]);
  }
  const found = [...groups].flatMap(([prefix, own]) => (own.length === 0 ? [] : [{prefix, names: lossesFirst(own)}]));
  const hasLoss = ({names: own}: ScalarGroup): boolean => LOSS.test(own[0]!);
  return [...found.filter(hasLoss), ...found.filter((group) => !hasLoss(group))];
}

const LOSS = /(^|[/_.\-\s])loss$/i;

function lossesFirst(names: readonly string[]): string[] {
  return [...names.filter((name) => LOSS.test(name)), ...names.filter((name) => !LOSS.test(name))];
}
