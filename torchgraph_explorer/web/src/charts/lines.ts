/** A statistic over time, as the points of lines that break where there is none. */

import type {SeriesHistory} from '../api/types';
import type {Measure} from '../state/measures';
import {pieces} from './bands';
import {rowOfEntry} from './history';

export interface LinePoint {
  frame: number;
  value: number;
}

/** A measure at every frame of a history that has it as a finite number. */
export function linePoints(history: SeriesHistory, measure: Measure): LinePoint[] {
  const found: LinePoint[] = [];
  history.frame.forEach((frame, entry) => {
    const value = measure.of(rowOfEntry(history, entry));
    if (Number.isFinite(value)) found.push({frame, value});
  });
  return found;
}

/** The points cut into lines: a frame without the series, or where the measure is not a finite number, is a gap. */
export function linesOf(points: readonly LinePoint[]): LinePoint[][] {
  return pieces(points, (left, right) => right.frame === left.frame + 1);
}
