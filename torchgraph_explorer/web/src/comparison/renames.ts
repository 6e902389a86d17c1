/** Names of modules that differ between runs: `layer1.* = stage1.*`, one a line. */

export interface Rename {
  /** In the run on show, and in the others. `*` stands for anything. */
  from: string;
  to: string;
}

export interface Renames {
  rules: readonly Rename[];
  /** The lines that are no rule, as a sentence; null if all are. */
  problem: string | null;
}

/** Reads lines with an equals sign between two names. A line that begins with `#` says nothing. */
export function parseRenames(text: string): Renames {
  const lines = text.split(/[\n;]/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const rules: Rename[] = [];
  const bad: string[] = [];
  for (const line of lines) {
    const [from, to, more] = line.split('=').map((part) => part.trim());
    const isRule = from && to && more === undefined && stars(from) === stars(to);
    if (isRule) rules.push({from, to});
    else bad.push(line);
  }
  const advice = 'Write a name on each side of one =, with as many * on both: layer1.* = stage1.*.';
  return {rules, problem: bad.length === 0 ? null : `${bad.map((line) => JSON.stringify(line)).join(', ')}: ${advice}`};
}

function stars(text: string): number {
  return text.split('*').length - 1;
}

/** `name` by the first rule that it matches, on the side `side`, as it is on the other; null without one. */
function renamed(name: string, rules: readonly Rename[], side: 'from' | 'to'): string | null {
  for (const rule of rules) {
    const found = matched(name, rule[side]);
    if (found !== null) return filled(rule[side === 'from' ? 'to' : 'from'], found);
  }
  return null;
}

/** What each star stands for; null without a match. The last star takes as much as it can, the others as little. */
function matched(name: string, pattern: string): string[] | null {
  const parts = pattern.split('*');
  if (parts.length === 1) return name === pattern ? [] : null;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (!name.startsWith(first)) return null;
  const found: string[] = [];
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const next = name.indexOf(part, at);
    if (next < 0) return null;
    found.push(name.slice(at, next));
    at = next + part.length;
  }
  const end = name.length - last.length;
  if (end < at || !name.endsWith(last)) return null;
  return [...found, name.slice(at, end)];
}

function filled(pattern: string, stars: readonly string[]): string {
  return pattern.split('*').reduce((text, part, i) => (i === 0 ? part : text + stars[i - 1]! + part), '');
}

/**
 * Which module of another run each of ours is: by a rule, else by its own name, else by a rule read from right to left. No
 * module of the other run is taken twice. What `layer1.*` renames, `layer1` is, too.
 */
export function moduleMap(ours: Iterable<string>, theirs: Iterable<string>, rules: readonly Rename[]): Map<string, string> {
  const [mine, others] = [[...new Set(ours)], new Set(theirs)];
  const found = new Map<string, string>();
  const taken = new Set<string>();
  const all = [...rules, ...rules.filter(({from, to}) => from.endsWith('.*') && to.endsWith('.*')).map(({from, to}) => ({from: from.slice(0, -2), to: to.slice(0, -2)}))];
  const ways: ((name: string) => string | null)[] = [(name) => renamed(name, all, 'from'), (name) => name, (name) => renamed(name, all, 'to')];
  for (const way of rules.length === 0 ? [ways[1]!] : ways) {
    for (const name of mine) {
      const other = found.has(name) ? null : way(name);
      if (other === null || !others.has(other) || taken.has(other)) continue;
      found.set(name, other);
      taken.add(other);
    }
  }
  return found;
}
