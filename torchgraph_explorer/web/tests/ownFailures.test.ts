import {expect, test} from 'vitest';
import {isFailure} from '../src/view/own/failures';

test.each([
  [200, true, false],
  [500, true, false], // of the server itself: the page says why
  [503, false, true],
  [0, true, true],
  [0, false, false], // the browser may not tell
])('a page with status %d, told before: %s, has failed: %s', (status, isTold, expected) => expect(isFailure(status, isTold)).toBe(expected));
