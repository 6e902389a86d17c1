/** Diamonds where findings begin: those that would cover each other are one. */

/** From the middle of a diamond to one of its corners, its outline included. */
export const HALF_PX = 9;

const MOST = 60;

export interface Mark<Subject> {
  /** Of its middle. */
  x: number;
  y: number;
  /** What it stands for, the first of them at its place. */
  subjects: Subject[];
}

/** Diamonds with edges at 45° touch where their distances across and down add up to a diagonal. */
export function marksOf<Subject>(places: Iterable<{x: number; y: number; subject: Subject}>): Mark<Subject>[] {
  const marks: Mark<Subject>[] = [];
  for (const {x, y, subject} of places) {
    const covered = marks.find((one) => Math.abs(one.x - x) + Math.abs(one.y - y) < 2 * HALF_PX);
    if (covered) covered.subjects.push(subject);
    else if (marks.length < MOST) marks.push({x, y, subjects: [subject]});
  }
  return marks;
}
