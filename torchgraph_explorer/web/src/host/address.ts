/** Our part of the address of TensorBoard's page: `#torchgraph&p.torchgraph.view=…`. Pure. */

const TAB = 'torchgraph';
const OURS = `p.${TAB}.view=`;

/** The view that TensorBoard's fragment names; null without one. */
export function viewIn(hash: string): string | null {
  const part = parts(hash).find((one) => one.startsWith(OURS));
  return part === undefined ? null : decode(part.slice(OURS.length));
}

/** The fragment with this view in it; null if it names another tab. */
export function withView(hash: string, view: string): string | null {
  if (parts(hash)[0] !== TAB) return null;
  const others = parts(hash).filter((one) => !one.startsWith(OURS));
  return `#${[...others, ...(view === '' ? [] : [OURS + encodeURIComponent(view)])].join('&')}`;
}

/** What TensorBoard filters runs by, a regular expression in the query of its page; empty if nothing. */
export function runFilterIn(search: string): string {
  return new URLSearchParams(search).get('runFilter') ?? '';
}

function parts(hash: string): string[] {
  return hash.replace(/^#/, '').split('&');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
