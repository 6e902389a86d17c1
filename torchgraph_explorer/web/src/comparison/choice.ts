/** Which runs are chosen beside the one on show, and how they are compared, as the address has it. */

/** A model of a run beside the one on show. */
export interface ComparedRun {
  run: string;
  model: string;
  /** Its number from 1: its colour, and its letter from B on. The run on show has 0. */
  number: number;
}

export interface ComparisonChoice {
  runs: readonly ComparedRun[];
  /** All runs that match the filter are compared, whatever `runs` has. */
  isAll: boolean;
  /** Lines such as `layer1.* = stage1.*`: names of modules in the run on show, and in the others. */
  renames: string;
  /** Number of the run with which the graph is compared; null for the first. */
  against: number | null;
}

export const COMPARISON_DEFAULTS: ComparisonChoice = {runs: [], isAll: false, renames: '', against: null};

/** Other runs are chosen. */
export function isCompared({runs, isAll}: ComparisonChoice): boolean {
  return isAll || runs.length > 0;
}

/** Runs beside the one on show that are opened at a time: each one is asked for all that is shown of it. */
export const MOST_RUNS = 31;

/** Adds what was chosen to the query of an address. */
export function addComparison(query: URLSearchParams, {runs, isAll, renames, against}: ComparisonChoice): void {
  if (isAll) query.set('with', 'all');
  else for (const {run, model, number} of runs) query.append('with', `${number}.${encodeURIComponent(run)}/${encodeURIComponent(model)}`);
  if (renames.trim() !== '') query.set('rename', renames);
  if (against !== null) query.set('against', String(against));
}

/** What a query says; what is not understood is left out. */
export function comparisonIn(query: URLSearchParams): ComparisonChoice {
  const all = query.getAll('with');
  const against = Number(query.get('against') ?? NaN);
  return {
    runs: distinct(all.flatMap(runIn)).slice(0, MOST_RUNS),
    isAll: all.includes('all'),
    renames: query.get('rename') ?? '',
    against: Number.isInteger(against) && against > 0 ? against : null,
  };
}

function runIn(text: string): ComparedRun[] {
  const [, number, run, model] = /^(\d{1,3})\.([^/]*)\/([^/]*)$/.exec(text) ?? [];
  if (number === undefined || Number(number) === 0) return [];
  try {
    return [{run: decodeURIComponent(run!), model: decodeURIComponent(model!), number: Number(number)}];
  } catch {
    return []; // half of an escape
  }
}

/** Each model and each number once. */
function distinct(runs: readonly ComparedRun[]): ComparedRun[] {
  return runs.filter((one, i) => runs.findIndex((other) => other.number === one.number || isSame(other, one)) === i);
}

export function isSame(one: Pick<ComparedRun, 'run' | 'model'>, other: Pick<ComparedRun, 'run' | 'model'>): boolean {
  return one.run === other.run && one.model === other.model;
}

/** The runs with one more, which gets the first free number. */
export function withRun(runs: readonly ComparedRun[], added: Pick<ComparedRun, 'run' | 'model'>): readonly ComparedRun[] {
  if (runs.some((one) => isSame(one, added)) || runs.length >= MOST_RUNS) return runs;
  const taken = new Set(runs.map(({number}) => number));
  let number = 1;
  while (taken.has(number)) number += 1;
  return [...runs, {...added, number}];
}

/** The colour of a run, as a variable of the stylesheet. */
export function runColour(number: number): string {
  return `var(--run-${number % COLOURS})`;
}

const COLOURS = 8;

/** How its lines are dashed: those of the first four colours are whole, the others differ in more than colour. */
export function runDashes(number: number): readonly number[] {
  if (number < 4) return [];
  return number < COLOURS ? [6, 3] : [2, 2.5];
}

/** What a run goes by where its name has no room: A for the one on show, B, C …, AA after Z. */
export function runLetter(number: number): string {
  const letter = String.fromCharCode(65 + (number % 26));
  return number < 26 ? letter : runLetter(Math.floor(number / 26) - 1) + letter;
}
