import {expect, test} from 'vitest';
import {exportCommand} from '../src/view/pane/exportCommand';

test.each([
  ['/data/runs', ['a', 'sweep/lr=0.1', 'a'], 'torchgraph export /data/runs/a /data/runs/sweep/lr=0.1 -o page.html'],
  ['/data/one run', ['.'], "torchgraph export '/data/one run' -o page.html"],
  ["/it's/", ['x'], "torchgraph export '/it'\\''s/x' -o page.html"],
  ['s3://bucket/runs', ['größe'], 'torchgraph export s3://bucket/runs/größe -o page.html'],
  ['C:\\my runs', ['x'], 'torchgraph export "C:\\my runs/x" -o page.html'],
])('the folder %s and the runs %j are exported by %s', (logdir, runs, command) => {
  expect(exportCommand(logdir, runs)).toBe(command);
});
