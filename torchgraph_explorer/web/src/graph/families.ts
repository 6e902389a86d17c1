/** Families of module classes, by which nodes are coloured. The table is also read by `torchgraph_explorer/families.py`. */

import table from '../../../families.json';

export type Family = keyof typeof table.families;

/** In the order in which the legend lists them. */
export const FAMILIES = Object.keys(table.families) as Family[];

/** The first pattern that is found in a class's name gives its family. */
const RULES = table.rules.map(([pattern = '', family]) => [new RegExp(pattern, 'i'), family as Family] as const);

/** The family of a class. A class with an inside that is not of a more specific family is a container. */
export function familyOf(className: string, hasInside: boolean): Family {
  const family = RULES.find(([pattern]) => pattern.test(className))?.[1] ?? 'other';
  return hasInside && ['other', 'convolution', 'linear'].includes(family) ? 'container' : family;
}
