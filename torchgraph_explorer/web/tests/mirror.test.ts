import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';

/** The entries of a window. The state of one that was typed in or followed is null. */
class Entries {
  at = 0;
  readonly listeners: ((event: {state: unknown}) => void)[] = [];

  constructor(private list: {state: unknown; hash: string}[]) {}

  get count(): number {
    return this.list.length;
  }

  get hash(): string {
    return this.list[this.at]!.hash;
  }

  get href(): string {
    return `http://host/${this.hash}`;
  }

  get state(): unknown {
    return this.list[this.at]!.state;
  }

  pushState(state: unknown, _: string, address: string): void {
    this.list = this.list.slice(0, ++this.at);
    this.replaceState(state, _, address);
  }

  replaceState(state: unknown, _: string, address: string): void {
    this.list[this.at] = {state, hash: new URL(address, 'http://host/').hash};
  }

  go(by: number): void {
    this.at += by;
    this.listeners.forEach((listener) => listener({state: this.state}));
    vi.runAllTimers();
  }
}

/** The viewer's choices, mirrored in a window that was opened with this address. */
async function opened(hash: string) {
  vi.resetModules();
  const [store, {startMirror}] = await Promise.all([import('../src/view/state/choices'), import('../src/view/state/mirror')]);
  const entries = new Entries([{state: null, hash}]);
  vi.stubGlobal('history', entries);
  vi.stubGlobal('location', entries);
  vi.stubGlobal('window', {addEventListener: (_: string, listener: () => void) => entries.listeners.push(listener)});
  startMirror();
  vi.runAllTimers();
  const settle = (act: () => void): void => {
    act();
    vi.runAllTimers();
  };
  return {
    entries,
    choose: (inside: string) => settle(() => (store.insideKey.value = inside)),
    pin: () => settle(() => store.pin('x#0')),
    look: (key: string) => settle(() => store.pinInPassing(key)),
    set: (change: (chosen: typeof store) => void) => settle(() => change(store)),
    shown: () => ({inside: store.insideKey.value, pins: store.pins.value.length, run: store.run.value}),
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('back and forward', () => {
  test('lead out of and into calls, and undo and redo pins, by one press each', async () => {
    const {entries, choose, pin, shown} = await opened('');
    choose('a#0');
    pin();
    choose('a.b#0');
    const seen = [-1, -1, -1, 1, 1, 1].map((by) => {
      entries.go(by);
      return [shown().inside, shown().pins];
    });
    const [out, [a, withPin, ab]] = [[null, 0], [['a#0', 0], ['a#0', 1], ['a.b#0', 1]]] as const;
    expect(seen).toEqual([withPin, a, out, a, withPin, ab]);
    expect(entries.count).toBe(4);
  });

  test('lead to the panel that was looked at before, and past the calls that were chosen in it', async () => {
    const {entries, look, set} = await opened('#run=r&model=m');
    look('a#0');
    set(({changePin}) => changePin('a#0', {key: 'a#7'}));
    look('b#0');
    entries.go(-1);
    expect(entries.hash).toContain('pin=0%7E.a%237');
    entries.go(-1);
    expect(entries.hash).not.toContain('pin=');
    expect(entries.count).toBe(3);
  });

  test('do not lead back to before a link had led to its finding', async () => {
    const activation = {hasBeenActive: false};
    vi.stubGlobal('navigator', {userActivation: activation});
    const {entries, look, choose} = await opened('#finding=f');
    look('a#0');
    choose('a#0');
    expect(entries.count).toBe(1);
    activation.hasBeenActive = true;
    look('b#0');
    expect(entries.count).toBe(2);
  });

  test('take what is chosen on the way to a place for one move', async () => {
    const {entries, set} = await opened('');
    set(({finding, isOnTheWay, pinInPassing, insideKey}) => {
      isOnTheWay.value = true;
      finding.value = 'f';
      vi.advanceTimersByTime(500); // while the graph of the step is fetched
      pinInPassing('a#0');
      insideKey.value = 'a#0';
      isOnTheWay.value = false;
    });
    expect(entries.count).toBe(2);
    entries.go(-1);
    expect(entries.hash).toBe('');
  });
});

test('back leads to the page, the model and the run of before, and the first run that is shown is no entry', async () => {
  const {entries, set} = await opened('');
  set(({run, model}) => ((run.value = 'first'), (model.value = 'net')));
  expect(entries.count).toBe(1);
  set(({view}) => (view.value = 'tensors'));
  set(({run}) => (run.value = 'second'));
  set(({model}) => (model.value = 'head'));
  const seen = [-1, -1, -1].map((by) => {
    entries.go(by);
    let text = '';
    set(({run, model, view}) => (text = [run.value, model.value, view.value].join(' ')));
    return text;
  });
  expect(seen).toEqual(['second net tensors', 'first net tensors', 'first net graph']);
  expect(entries.count).toBe(4);
});

test('an address that is typed into an open page is followed in full, and so is the way back', async () => {
  const {entries, choose, pin, shown} = await opened('#run=r&model=m');
  choose('a#0');
  pin();
  vi.advanceTimersByTime(1);
  entries.pushState(null, '', '#run=s&model=m&inside=b%230');
  entries.go(0);
  expect(shown()).toEqual({inside: 'b#0', pins: 0, run: 's'});
  entries.go(-1);
  expect(shown()).toEqual({inside: 'a#0', pins: 1, run: 'r'});
  expect(entries.count).toBe(4);
});
