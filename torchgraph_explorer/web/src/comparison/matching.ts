/** The same series in another run: that of the same tensor of the module with the same name, or the one it was renamed to. */

import type {SeriesInfo} from '../api/types';
import {moduleMap} from './renames';
import type {Rename} from './renames';

export interface Matching {
  /** The other run's series by the number of ours. */
  series: ReadonlyMap<number, SeriesInfo>;
  /** The other run's module by the name of ours. */
  modules: ReadonlyMap<string, string>;
  /** What has no counterpart. */
  onlyOurs: readonly Unmatched[];
  onlyTheirs: readonly Unmatched[];
}

/** Series of a module that the other run does not have. */
export interface Unmatched {
  module: string;
  /** Tensors, as `output`, `weight (gradient)`; empty where it is the whole module. */
  tensors: readonly string[];
}

/** Matches all series of two runs. */
export function matchSeries(ours: readonly SeriesInfo[], theirs: readonly SeriesInfo[], rules: readonly Rename[]): Matching {
  const modules = moduleMap(namesIn(ours), namesIn(theirs), rules);
  const byName = new Map(theirs.map((one) => [nameOf(one, one.module), one]));
  const series = new Map<number, SeriesInfo>();
  const taken = new Set<SeriesInfo>();
  for (const one of ours) {
    const other = modules.get(one.module);
    const found = other === undefined ? undefined : byName.get(nameOf({...one, path: pathOf(one, modules)}, other));
    if (found === undefined) continue;
    series.set(one.series, found);
    taken.add(found);
  }
  const matched = new Set(modules.values());
  return {
    series,
    modules,
    onlyOurs: grouped(ours.filter((one) => !series.has(one.series)), (module) => !modules.has(module)),
    onlyTheirs: grouped(theirs.filter((one) => !taken.has(one)), (module) => !matched.has(module)),
  };
}

function namesIn(series: readonly SeriesInfo[]): Set<string> {
  return new Set(series.map(({module}) => module));
}

function nameOf({call, role, path, kind}: SeriesInfo, module: string): string {
  return JSON.stringify([module, call, role, path, kind]);
}

/** The path of a series in the other run: that of an edge names the calls at its ends. */
function pathOf({role, path, module}: SeriesInfo, modules: ReadonlyMap<string, string>): string {
  const found = role === 'edge' ? /^(.*?) -> (.*?)( #.*)?$/.exec(path) : null;
  if (found === null) return path;
  return `${endOf(found[1]!, module, modules)} -> ${endOf(found[2]!, module, modules)}${found[3] ?? ''}`;
}

/** One end of an edge within the module `inside`: a call `name#2`, `/name` for one elsewhere, or a tensor. */
function endOf(end: string, inside: string, modules: ReadonlyMap<string, string>): string {
  if (end === '' || end.startsWith(':') || end.startsWith('@')) return end;
  const at = end.indexOf('#');
  const [name, call] = at < 0 ? [end, ''] : [end.slice(0, at), end.slice(at)];
  const whole = name.startsWith('/') ? name.slice(1) : inside === '' ? name : `${inside}.${name}`;
  const [other, outer] = [modules.get(whole) ?? whole, modules.get(inside) ?? inside];
  const prefix = outer === '' ? '' : `${outer}.`;
  return `${other.startsWith(prefix) ? other.slice(prefix.length) : `/${other}`}${call}`;
}

const KINDS: Record<SeriesInfo['kind'], string> = {
  value: '',
  grad: ' (gradient)',
  grad_norm: ' (gradient norm)',
  optimizer_grad: ' (optimizer gradient)',
  update: ' (update)',
  update_ratio: ' (update ratio)',
  time: ' (time)',
  memory: ' (memory)',
};

function grouped(series: readonly SeriesInfo[], isWhole: (module: string) => boolean): Unmatched[] {
  const found = new Map<string, string[]>();
  for (const {module, call, path, kind} of series) {
    const tensors = found.get(module) ?? [];
    if (!isWhole(module)) tensors.push(`${call ? `#${call + 1} ` : ''}${path}${KINDS[kind]}`);
    found.set(module, tensors);
  }
  return [...found].map(([module, tensors]) => ({module, tensors}));
}
