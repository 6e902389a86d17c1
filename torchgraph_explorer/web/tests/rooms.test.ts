/** Who may import whom: each room below imports only those that it names. */

import {readdirSync, readFileSync} from 'node:fs';
import {dirname, join, normalize, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import {describe, expect, test} from 'vitest';

const SOURCE = fileURLToPath(new URL('../src', import.meta.url));

/** Plain values, which stand beside the rooms and may be used in all of them. */
const VALUES = ['history', 'numberText', 'statistics', 'steps'];

const MAY_IMPORT: Record<string, readonly string[]> = {
  api: ['xray'],
  histogram: [],
  values: ['api', 'histogram'],
  charts: ['api', 'histogram', 'values'],
  graph: ['api', 'histogram', 'values', 'shared with Python'],
  model: ['api', 'graph', 'histogram', 'values'],
  comparison: ['api', 'charts', 'histogram', 'values'],
  findings: ['api', 'graph', 'values'],
  flow: ['api', 'values'],
  host: [],
  tensors: ['api', 'charts', 'graph', 'values'],
  styles: [],
  xray: [],
  view: ['api', 'charts', 'comparison', 'findings', 'flow', 'graph', 'histogram', 'host', 'model', 'styles', 'tensors', 'values', 'xray'],
  main: ['styles', 'view'],
};

function roomOf(path: string): string {
  const [first = ''] = path.split('/');
  if (first === '..') return 'shared with Python';
  const name = first.replace(/\.\w+$/, '');
  return VALUES.includes(name) ? 'values' : name;
}

const IMPORT = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** `charts/Strip.tsx imports view/state` for each import that no rule allows. */
function forbidden(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([path, text]) => {
    const room = roomOf(path);
    const imported = [...text.matchAll(IMPORT)].map(([, name = '']) => normalize(join(dirname(path), name)));
    const wrong = imported.filter((one) => roomOf(one) !== room && !MAY_IMPORT[room]?.includes(roomOf(one)));
    return wrong.map((one) => `${path} imports ${one}`);
  });
}

function sources(): Map<string, string> {
  const all = readdirSync(SOURCE, {recursive: true, withFileTypes: true});
  const code = all.filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name));
  return new Map(
    code.map(({parentPath, name}) => {
      const path = join(parentPath, name);
      return [relative(SOURCE, path), readFileSync(path, 'utf8')];
    }),
  );
}

describe('the rooms of src', () => {
  test('import only those that they may', () => expect(forbidden(sources())).toEqual([]));

  test('are all named here', () => {
    const rooms = new Set([...sources().keys()].map(roomOf));
    expect([...rooms].filter((room) => !(room in MAY_IMPORT))).toEqual([]);
  });
});

test.each([
  ["import {chart} from '../view/state/shown';", ['charts/Strip.tsx imports view/state/shown']],
  ["import type {Model} from '../model/model';", ['charts/Strip.tsx imports model/model']],
  ["const late = await import('../view/App');", ['charts/Strip.tsx imports view/App']],
  ["import {sceneOf} from './scene';\nimport {frameAtStep} from '../steps';", []],
])('a chart that has `%s` is noticed', (text, found) => {
  expect(forbidden(new Map([['charts/Strip.tsx', text]]))).toEqual(found);
});
