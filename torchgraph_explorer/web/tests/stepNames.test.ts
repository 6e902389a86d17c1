/** A step is written in one way: its thousands are apart, wherever it stands. */

import {readdirSync, readFileSync} from 'node:fs';
import {join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import {describe, expect, test} from 'vitest';

const SOURCE = fileURLToPath(new URL('../src', import.meta.url));

/** Where a step is part of a file or of an error that only developers read, and stays a plain number. */
const PLAIN = ['api/page.ts', 'api/pageTensors.ts', 'numberText.ts', 'view/pane/SaveMenu.tsx', 'xray/table.ts'];

const WRITTEN = /\bsteps? \$?\{(?!wholeNumber\()/i;

/** The lines that write a step in a way of their own. */
function ofTheirOwn(text: string): string[] {
  return text.split('\n').filter((line) => WRITTEN.test(line) && !/^(export )?class /.test(line) && !line.includes('fileName('));
}

function sources(): [string, string][] {
  const files = readdirSync(SOURCE, {recursive: true, withFileTypes: true}).filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name));
  return files.map(({parentPath, name}) => [relative(SOURCE, join(parentPath, name)), readFileSync(join(parentPath, name), 'utf8')]);
}

describe('a step is written by `stepName` or `wholeNumber`', () => {
  test('in all files', () => {
    const found = sources().filter(([path]) => !PLAIN.includes(path)).flatMap(([path, text]) => ofTheirOwn(text).map((line) => `${path}: ${line}`));
    expect(found).toEqual([]);
  });

  test.each(['`Go to step ${note.step}`', '<b>step {steps[frame]}</b>', '`Step ${step}`', '`steps ${from}–${to}`'])('%s is noticed', (line) => {
    expect(ofTheirOwn(line)).toEqual([line]);
  });
});
