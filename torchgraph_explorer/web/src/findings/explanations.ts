/** Where the links of an explanation lead, and in which order its parts are shown. */

import type {Explanation} from '../api/types';

/** Another explanation, an address on the web, or a page of the documentation, which is not at hand. */
export type Target = {explanation: string} | {address: string} | {page: string};

export function targetOf(link: string): Target {
  if (link.startsWith('#')) return {explanation: link.slice(1)};
  if (link.startsWith('https://')) return {address: link};
  return {page: `docs/${link.split('#')[0]}`};
}

/** Whoever has the finding knows that it is reported: what to do comes before when that is. */
const EARLIER = ['What it means', 'What to do', 'When it is not reported, or may be wrong'];

export function partsInOrder({parts}: Explanation): Explanation['parts'] {
  const rank = ({name}: {name: string}): number => (EARLIER.includes(name) ? EARLIER.indexOf(name) : EARLIER.length);
  return [...parts].sort((one, other) => rank(one) - rank(other));
}
