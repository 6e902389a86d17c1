import {describe, expect, it} from 'vitest';
import {runFilterIn, viewIn, withView} from '../src/host/address';
import {filtered} from '../src/view/state/runFilter';

describe('our part of the address of TensorBoard', () => {
  const view = 'run=a%2Fb&pin=0.conv%230';
  const hash = `#torchgraph&p.torchgraph.view=${encodeURIComponent(view)}`;

  it('comes back as it was put there', () => {
    expect(withView('#torchgraph', view)).toBe(hash);
    expect(viewIn(hash)).toBe(view);
  });
  it('replaces the one before and leaves the rest', () => {
    expect(withView('#torchgraph&p.torchgraph.view=run%3Dx&darkMode=1', view)).toBe(
      `#torchgraph&darkMode=1&p.torchgraph.view=${encodeURIComponent(view)}`,
    );
  });
  it('is left out when nothing is chosen', () => {
    expect(withView(hash, '')).toBe('#torchgraph');
  });
  it('is not written into the address of another tab', () => {
    expect(withView('#timeseries', view)).toBeNull();
    expect(withView('', view)).toBeNull();
  });
  it('is null where there is none, and empty where it cannot be read', () => {
    expect(viewIn('#torchgraph')).toBeNull();
    expect(viewIn('#torchgraph&p.torchgraph.view=%E0%A4')).toBe('');
  });
});

describe('the filter of runs', () => {
  it('is in the query, empty where there is none', () => {
    expect(runFilterIn('?runFilter=seed%5B23%5D')).toBe('seed[23]');
    expect([runFilterIn(''), runFilterIn('?runFilter=')]).toEqual(['', '']);
  });

  const RUNS = ['seed1', 'SEED2', 'seed3', 'a(b', 'x.y'].map((run) => ({run}));
  it.each([
    ['', ['seed1', 'SEED2', 'seed3', 'a(b', 'x.y'], null],
    ['seed[23]', ['SEED2', 'seed3'], null],
    ['1|x', ['seed1', 'x.y'], null],
    ['a(', ['a(b'], /^“a\(” is not a regular expression: .+\. It is taken as plain text\.$/],
    ['(e+)+$', [], /^“\(e\+\)\+\$” could take too long/],
    ['nothing', [], /^No run has a name that matches\.$/],
  ])('%s lets the matching runs through', (filter, expected, problem) => {
    const found = filtered(RUNS, filter);
    expect(found.runs.map(({run}) => run)).toEqual(expected);
    if (problem === null) expect(found.problem).toBeNull();
    else expect(found.problem).toMatch(problem);
  });
});
