import {describe, expect, it} from 'vitest';
import {runFilterIn, viewIn, withView} from '../src/host/address';

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
  it('is a regular expression of the query', () => {
    expect(runFilterIn('?runFilter=seed%5B23%5D')?.test('SEED3')).toBe(true);
  });
  it('is null where there is none, or where it is not finished', () => {
    expect([runFilterIn(''), runFilterIn('?runFilter='), runFilterIn('?runFilter=%28a')]).toEqual([null, null, null]);
  });
});
