/** Models that are one rank of a training each. */

const RANK = /^(.*) \(rank (\d+)\)$/s;

/** The ranks of a model in their order, where the first of them was; a record has them as they came. */
export function byRank(models: readonly string[]): string[] {
  const parts = models.map((model) => RANK.exec(model) ?? [model, model, '0']);
  const names = parts.map(([, name]) => name);
  const placed = models.map((model, i) => ({model, place: names.indexOf(names[i]), rank: Number(parts[i]![2])}));
  return placed.sort((a, b) => a.place - b.place || a.rank - b.rank).map(({model}) => model);
}
