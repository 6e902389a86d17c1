/** Which frame facts are told of while a run grows. */

import {describe, expect, test} from 'vitest';
import {reached} from '../src/history';
import type {SeriesHistory} from '../src/api/types';

const history = (until?: number): SeriesHistory => ({...({} as SeriesHistory), ...(until === undefined ? {} : {until})});

describe('the frame that is told of', () => {
  test.each([
    ['is the one on show, if it was looked at', history(5), 4, 4],
    ['is the last one that was looked at, until the one on show has come', history(5), 6, 4],
    ['is the one on show, if it is not known how many were looked at', history(), 6, 6],
  ])('%s', (_, of, frame, expected) => expect(reached(of, frame)).toBe(expected));
});
