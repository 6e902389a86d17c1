/** The parts of the screen around the graph, which can be put away. */

export const PARTS = ['modules', 'panels', 'header', 'legend', 'steps'] as const;
export type Part = (typeof PARTS)[number];

/** What is in it, as one reads it after "Show" and "Hide". */
export const PART_NAMES: Record<Part, string> = {
  modules: 'modules and facts',
  panels: 'panels',
  header: 'header: runs, theme, help',
  legend: 'legend',
  steps: 'steps',
};

/** The key that shows and hides it. */
export function partKey(part: Part): string {
  return String(PARTS.indexOf(part) + 1);
}
