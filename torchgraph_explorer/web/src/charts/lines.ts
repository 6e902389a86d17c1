/** A statistic over time, as the points of lines with gaps. */

import type {SeriesHistory} from '../api/types';
import type {Measure} from '../statistics';
import {pieces} from './bands';
import {isMerged, rangeOfEntry, rowOfEntry} from '../history';

export interface LinePoint {
  frame: number;
  value: number;
  /** Between which it was where several frames are merged; else the value. */
  low: number;
  high: number;
}

/** A measure at every entry of a history that has it as a finite number. */
export function linePoints(history: SeriesHistory, measure: Measure): LinePoint[] {
  const found: LinePoint[] = [];
  history.frame.forEach((frame, entry) => {
    const value = measure.of(rowOfEntry(history, entry));
    if (!Number.isFinite(value)) return;
    const ends = isMerged(history, entry) ? rangeOfEntry(history, entry).map((row) => measure.of(row)) : [];
    const all = [value, ...ends.filter(Number.isFinite)];
    found.push({frame, value, low: Math.min(...all), high: Math.max(...all)});
  });
  return found;
}

/**
 * The points cut into lines: a frame without the series, or where the measure is not a finite number, is a gap.
 *
 * @param binOf The number of each frame's bin; frames are bins of their own where it is left out.
 */
export function linesOf(points: readonly LinePoint[], binOf: (frame: number) => number = (frame) => frame): LinePoint[][] {
  return pieces(points, (left, right) => binOf(right.frame) === binOf(left.frame) + 1);
}
