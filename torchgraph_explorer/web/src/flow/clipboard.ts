/** Numbers as text, as spreadsheets, CSV files and numpy write them. */

/** Rows of numbers. */
export type Table = readonly (readonly number[])[];

/** The numbers in a text: a row for each line. Null if something else is in it. */
export function tableFrom(text: string): Table | null {
  const lines = text
    .replace(/^\s*(array|tensor)\s*\(/, '')
    .replace(/,\s*(dtype|device)=[\w.':]+/g, '')
    .replace(/\]\s*,\s*\[/g, '\n')
    .replace(/[[\]();]/g, ' ')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const rows = lines.map((line) => line.split(/[\s,]+/).filter((part) => part !== '').map(numberFrom));
  return rows.length > 0 && rows.every((row) => row.every((value) => value !== null)) ? (rows as number[][]) : null;
}

function numberFrom(text: string): number | null {
  const known = {nan: NaN, inf: Infinity, '+inf': Infinity, '-inf': -Infinity, infinity: Infinity, '-infinity': -Infinity}[text.toLowerCase()];
  if (known !== undefined) return known;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\.?$/i.test(text) ? Number(text.replace(/\.$/, '')) : null;
}

/** As a spreadsheet takes it. */
export function textOf(table: Table): string {
  return table.map((row) => row.map(shown).join('\t')).join('\n');
}

function shown(value: number): string {
  return Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

/** What JSON can hold: numbers that are not finite as the words that Python reads. */
export function forJson(value: number): number | string {
  return Number.isFinite(value) ? value : shown(value);
}
