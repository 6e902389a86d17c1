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

/** Where the label of a row stands. */
export interface LabelPlace {
  row: number;
  /** Of the label, in pixels from the top of the picture. */
  top: number;
}

/**
 * The labels that have room, from the top: each where its module begins, of those that would overlap the outermost, then the one with
 * most inside. One that has no room there stands further down beside what is inside its module.
 */
export function labelPlaces(rows: readonly XrayRow[], rowHeight: number, labelHeight: number): LabelPlace[] {
  if (rowHeight >= labelHeight) return rows.map((_, row) => ({row, top: (row + 0.5) * rowHeight - labelHeight / 2}));
  const taken: LabelPlace[] = [];
  const lowest = Math.max(0, rows.length * rowHeight - labelHeight);
  const topOf = (row: number): number | undefined => {
    const first = Math.min(row * rowHeight, lowest);
    const last = Math.max(first, endOf(rows, row) * rowHeight - labelHeight);
    const below = taken.map(({top}) => top + labelHeight).filter((top) => top > first && top <= last);
    const isFree = (top: number): boolean => taken.every((other) => Math.abs(other.top - top) >= labelHeight - ROUNDING);
    return [first, ...below.sort((one, other) => one - other)].find(isFree);
  };
  const size = rows.map(({module}) => rowsInside(module).length);
  const order = rows.map((_, row) => row).sort((one, other) => rows[one]!.module.depth - rows[other]!.module.depth || size[other]! - size[one]! || one - other);
  for (const row of order) {
    const top = topOf(row);
    if (top !== undefined) taken.push({row, top});
  }
  return taken.sort((one, other) => one.row - other.row);
}

/** Pixels that two sums of floating-point numbers may differ by. */
const ROUNDING = 1e-6;

/** The row behind the last one that is inside the module of `row`. */
function endOf(rows: readonly XrayRow[], row: number): number {
  let end = row + 1;
  while (end < rows.length && rows[end]!.module.depth > rows[row]!.module.depth) end++;
  return end;
}
