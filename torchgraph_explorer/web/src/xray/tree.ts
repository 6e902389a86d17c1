/** The rows of the x-ray: the tree of modules, in the order of execution, some of them folded. Pure. */

export interface TreeModule {
  /** Qualified name; empty for the model itself. */
  name: string;
  /** What is written beside the row: the last part of its name. */
  label: string;
  depth: number;
  /** Its row in the picture; -1 for a module that only holds others. */
  row: number;
  children: TreeModule[];
}

export interface XrayRow {
  module: TreeModule;
  /** Rows of the picture that it stands for: its own, and those of all modules inside where it is folded. */
  rows: number[];
  isFolded: boolean;
}

/** The trees of `modules`, which are in the order of execution: submodules stand below the module that they are in. */
export function treeOf(modules: readonly string[], modelLabel: string): TreeModule[] {
  const known = new Map<string, TreeModule>();
  const roots: TreeModule[] = [];
  const add = (name: string): TreeModule => {
    const found = known.get(name);
    if (found) return found;
    const around = name === '' ? null : name.slice(0, Math.max(0, name.lastIndexOf('.')));
    const parent = around === null || (around === '' && !known.has('')) ? null : add(around);
    const label = name === '' ? modelLabel : name.slice(name.lastIndexOf('.') + 1);
    const module = {name, label, depth: 0, row: -1, children: []};
    known.set(name, module);
    (parent?.children ?? roots).push(module);
    return module;
  };
  if (modules.includes('')) add('');
  modules.forEach((name, row) => (add(name).row = row));
  return roots.map((one) => settled(one, 0));
}

/** Without modules that hold a single other one and have no row; with depths. */
function settled(module: TreeModule, depth: number): TreeModule {
  const [only] = module.children;
  if (module.row < 0 && only && module.children.length === 1) return settled({...only, label: `${module.label}.${only.label}`}, depth);
  return {...module, depth, children: module.children.map((child) => settled(child, depth + 1))};
}

/** The rows on show, from the top. */
export function visibleRows(roots: readonly TreeModule[], folded: ReadonlySet<string>): XrayRow[] {
  const found: XrayRow[] = [];
  const walk = (module: TreeModule): void => {
    const isFolded = module.children.length > 0 && folded.has(module.name);
    const rows = isFolded ? rowsInside(module) : module.row < 0 ? [] : [module.row];
    found.push({module, rows, isFolded});
    if (!isFolded) module.children.forEach(walk);
  };
  roots.forEach(walk);
  return found;
}

function rowsInside({row, children}: TreeModule): number[] {
  return [...(row < 0 ? [] : [row]), ...children.flatMap(rowsInside)];
}

/** The names of all modules that hold others. */
export function foldable(roots: readonly TreeModule[]): TreeModule[] {
  return roots.flatMap((one) => (one.children.length > 0 ? [one, ...foldable(one.children)] : []));
}

/** The row on show that a module is in; -1 without. */
export function rowOf(rows: readonly XrayRow[], name: string): number {
  const exact = rows.findIndex(({module}) => module.name === name);
  if (exact >= 0) return exact;
  return rows.findLastIndex(({module, isFolded}) => isFolded && (module.name === '' || name.startsWith(`${module.name}.`)));
}

/** Rows whose labels have room, from the top: each where its module begins, of those that would overlap the outermost, then the one with most inside. */
export function labelledRows(rows: readonly XrayRow[], rowHeight: number, labelHeight: number): number[] {
  const all = rows.map((_, row) => row);
  if (rowHeight >= labelHeight) return all;
  const taken: number[] = [];
  const place = (row: number): number => Math.min(row * rowHeight, rows.length * rowHeight - labelHeight);
  const isFree = (row: number): boolean => taken.every((other) => Math.abs(place(other) - place(row)) >= labelHeight);
  const size = rows.map(({module}) => rowsInside(module).length);
  const order = all.sort((one, other) => rows[one]!.module.depth - rows[other]!.module.depth || size[other]! - size[one]! || one - other);
  for (const row of order) if (isFree(row)) taken.push(row);
  return taken.sort((one, other) => one - other);
}
