import {expect, test} from 'vitest';
import {byRank} from '../src/view/state/ranks';

test.each([
  [['net (rank 1)', 'net (rank 0)'], ['net (rank 0)', 'net (rank 1)']],
  [['net (rank 10)', 'net (rank 9)'], ['net (rank 9)', 'net (rank 10)']],
  [['b (rank 1)', 'a (rank 0)', 'b (rank 0)', 'a (rank 1)'], ['b (rank 0)', 'b (rank 1)', 'a (rank 0)', 'a (rank 1)']],
  [['generator', 'discriminator'], ['generator', 'discriminator']],
])('the ranks of each model are in order: %j', (models, expected) => expect(byRank(models)).toEqual(expected));
