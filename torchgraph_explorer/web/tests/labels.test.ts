import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import type {ModuleGraph, TensorInfo} from '../src/api/types';
import {bySignature, labelWithin, tensorName} from '../src/graph/labels';
import {lettersOf, shapeText, variedText} from '../src/graph/shapes';
import {GRAPH, tensor} from './fixtures';

interface Contract {
  tensors: {path: string; parameters: string[]; name: string}[];
  signatures: {parameters: string[]; paths: string[]; order: string[]}[];
  modules: {name: string; outer: string; label: string}[];
  classes: Record<string, string>;
  shapes: {about: string; tensors: [(number | null)[], number[][]][]; texts: string[]}[];
}

const contract = JSON.parse(readFileSync(new URL('../../../tests/contracts/labels.json', import.meta.url), 'utf8')) as Contract;
const classes = new Map(Object.entries(contract.classes));

describe('tests/contracts/labels.json', () => {
  test.each(contract.tensors)('$path of $parameters is $name', ({path, parameters, name}) => {
    expect(tensorName(path, parameters)).toBe(name);
  });

  test.each(contract.signatures)('inputs in the order of $parameters', ({parameters, paths, order}) => {
    expect(bySignature(paths.map((path) => ({path})), parameters).map(({path}) => path)).toEqual(order);
  });

  test.each(contract.modules)('$name in $outer is $label', ({name, outer, label}) => {
    expect(labelWithin(name, outer, classes)).toBe(label);
  });

  test.each(contract.shapes)('of $about', ({tensors, texts}) => {
    const outputs = tensors.map(([shape, varied]): TensorInfo => ({...tensor('output', shape), varied}));
    const graph: ModuleGraph = {...GRAPH, nodes: [], calls: [{module: 0, call: 0, parent: null, inputs: [], outputs}]};
    expect(outputs.map((one) => shapeText(one, lettersOf(graph)))).toEqual(texts);
  });
});

describe('what a letter stands for', () => {
  const letters = new Map([['32,7', 'N'], ['5', 'L'], ['#2', 'A']]);

  test.each([
    [[null, 3], [[32, 7]], 'N varied: first 32, then 7'],
    [[null, null], [[32, 7], [32, 7]], 'N varied: first 32, then 7'],
    [[null, null], [[32, 7], [5]], 'N varied: first 32, then 7; L varied: 5 and others'],
    [[1, 2, null], undefined, 'A varied'],
    [[1, 2], [], ''],
  ])('%j with the sizes %j: %s', (shape, varied, text) => {
    expect(variedText({shape, ...(varied && {varied})}, letters)).toBe(text);
  });
});
