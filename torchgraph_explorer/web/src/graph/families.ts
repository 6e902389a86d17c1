/** Families of module classes, by which nodes are coloured. The rules and the order of legends are those of `families.json`. */

import shared from '../../../families.json';

export type Family = keyof typeof shared.colours;

/** In the order in which legends name them. */
export const FAMILIES = Object.keys(shared.colours) as readonly Family[];

/** The first pattern that is found in a class name gives its family. */
const RULES = shared.rules.map(({family, pattern}) => ({family: family as Family, pattern: new RegExp(pattern, 'i')}));

/**
 * The family of a class. A call that has an inside is a container where no rule fits its class, or where that would be a single
 * layer.
 */
export function familyOf(className: string, hasInside: boolean): Family {
  const family = RULES.find(({pattern}) => pattern.test(className))?.family;
  if (hasInside && (family === undefined || family === 'convolution' || family === 'linear')) return 'container';
  return family ?? 'other';
}
