/** Histories that have an entry for each frame. */

import type {SeriesHistory} from './types';

/** The fields that such a history needs. */
export type FrameHistory = Pick<SeriesHistory, 'frame' | 'statistics' | 'offsets' | 'buckets' | 'counts'>;

/** The same as a history whose entries could be bins. */
export function ofFrames(history: FrameHistory): SeriesHistory {
  const {frame, statistics} = history;
  const merged = new Uint32Array(frame.length).fill(1);
  return {...history, unit: 1, last: frame, merged, bad: frame, lowest: statistics, highest: statistics};
}
