import {describe, expect, test} from 'vitest';
import {patternOf, waysToMatch} from '../src/graph/pattern';
import {search} from '../src/graph/search';

const NAMES = ['layer1.conv1', 'layer1.conv2', 'layer2.conv2', 'layer2.head', 'headless', 'Head', 'a(b'];
const ITEMS = NAMES.map((name) => ({name, className: name.includes('conv') ? 'Conv2d' : 'Linear'}));

function found(typed: string): string[] {
  return search(ITEMS, typed).items.map(({name}) => name);
}

describe('a search', () => {
  test.each([
    ['conv2|head', ['Head', 'layer2.head', 'layer1.conv2', 'layer2.conv2', 'headless']],
    ['^layer\\d\\.conv', ['layer1.conv1', 'layer1.conv2', 'layer2.conv2']],
    ['conv[12]$ layer1', ['layer1.conv1', 'layer1.conv2']],
    ['^Head$', ['Head']],
    ['^head$', ['Head']],
    ['^(Conv|Lin)\\w+$ layer2', ['layer2.head', 'layer2.conv2']],
    ['\\Dconv1$', ['layer1.conv1']],
    ['^HEAD', []],
    ['layer1.conv1', ['layer1.conv1']],
  ])('for %s finds what matches', (typed, expected) => {
    expect(search(ITEMS, typed).problem).toBeNull();
    expect(found(typed)).toEqual(expected);
  });

  test.each([
    ['a(b', /^“a\(b” is not a regular expression: .+\. It was searched for as plain text\.$/],
    ['conv2|(', /is not a regular expression/],
    ['(a+)+$', /^“\(a\+\)\+\$” could take too long: .+ as plain text\.$/],
    ['x'.repeat(200) + '|y', /has at most 200 letters; this has 202/],
  ])('for %s, which cannot be used, says so', (typed, problem) => {
    expect(search(ITEMS, typed).problem).toMatch(problem);
  });

  test('for what is no regular expression finds it as plain text', () => expect(found('a(b')).toEqual(['a(b']));
});

const HARMLESS = ['conv2|head', '.*conv.*weight', '^blocks\\.\\d+\\.(attn|mlp)$', 'layer[12]?', '(conv|norm)\\d', '(ab)+', 'a{2,3}b', '[+*(]+', '\\(\\+', '(?:x|y)z'];
const CATASTROPHIC = [
  ...['(a+)+$', '(a*)*b', '(a|a)*$', '(a|aa)+$', '(.*a){20}$', '((a+)b?)+$', '(a?){30}a{30}', '(?:a+)+$', '([a-z]+)*$', '(a+){10}$'],
  ...['(\\w+\\.?)+$', '.*.*.*.*.*.*x', 'a?'.repeat(40) + 'a'.repeat(40), '(a|a)'.repeat(30) + '$', '(?=(a+)+$)x', '(?<n>a+)+$', 'a*'.repeat(20) + 'b'],
];

describe('an expression', () => {
  test.each(HARMLESS)('%s is used', (pattern) => expect(patternOf(pattern, '', 60).problem).toBeNull());

  test.each(CATASTROPHIC)('%s is not', (pattern) => {
    expect(patternOf(pattern, '', 60)).toMatchObject({regex: null, problem: expect.stringContaining('could take too long')});
  });

  test('that is used takes a moment at most, whatever it is made of', () => {
    const atoms = ['a', 'a+', 'a*', 'a?', '.*', '(a|b)', '(a|a)', '[ab]+', '(aa)*', '(a+)+', '(a|ab)*', 'a{0,9}', 'b', '(?:a*)?', '(a?b?)', '\\w+'];
    let state = 1;
    const pick = (): string => atoms[(state = (state * 48271) % 2147483647) % atoms.length] as string;
    const texts = ['a'.repeat(60), `${'a'.repeat(59)}c`, 'ab'.repeat(30), 'b'.repeat(60)];
    let used = 0;
    for (let i = 0; i < 300; i++) {
      const pattern = `${Array.from({length: 1 + (i % 6)}, pick).join('')}$`;
      const {regex} = patternOf(pattern, '', 60);
      if (regex === null) continue;
      used++;
      const began = performance.now();
      for (const text of texts) regex.test(text);
      expect(performance.now() - began, pattern).toBeLessThan(4000); // on a machine with other things to do
    }
    expect(used).toBeGreaterThan(100);
  });

  test('has as many ways as one counts', () => {
    expect(waysToMatch('ab', 3)).toBe(4);
    expect(waysToMatch('a|b', 3)).toBe(8);
    expect(waysToMatch('a*', 3)).toBe(10);
  });
});
