import {expect, it} from 'vitest';

import {missingGradient, type Circumstances} from '../../src/view/panels/missingGradient';

const ALL = ['io', 'io_grad', 'params', 'params_grad'];

function circumstances(changes: Partial<Circumstances>, dtype = 'float32', requires_grad = false): Circumstances {
  return {
    series: {module: 'head', role: 'output'},
    info: {path: 'output', shape: [2, 3], dtype, requires_grad},
    log: ALL,
    inPage: false,
    isFinished: false,
    ...changes,
  };
}

it.each<[string, Circumstances, string]>([
  ["the model's input", circumstances({series: {module: '', role: 'input'}}), 'The input does not require a gradient.'],
  ['an input of a part', circumstances({series: {module: 'head', role: 'input'}}), 'The input does not require a gradient.'],
  ['an output', circumstances({}), 'The output does not require a gradient.'],
  ['a frozen parameter', circumstances({series: {module: 'head', role: 'param'}}), 'The parameter does not require a gradient.'],
  ['an attached tensor', circumstances({series: {module: 'head', role: 'attached'}}), 'The tensor does not require a gradient.'],
  ['whole numbers', circumstances({series: {module: '', role: 'input'}}, 'int64'), 'Values of type int64 have no gradient.'],
  ['a mask', circumstances({series: {module: '', role: 'param'}}, 'bool'), 'Values of type bool have no gradient.'],
  ['half precision', circumstances({}, 'bfloat16'), 'The output does not require a gradient.'],
  ['complex numbers', circumstances({}, 'complex64'), 'The output does not require a gradient.'],
  ['gradients that are not logged', circumstances({log: ['io', 'params_grad']}, 'float32', true), 'Its gradient is not logged.'],
  ["a parameter's that is not", circumstances({series: {module: '', role: 'param'}, log: ['params']}), 'Its gradient is not logged.'],
  ['a run that goes on', circumstances({}, 'float32', true), 'No gradient yet.'],
  ['a run that is over', circumstances({isFinished: true}, 'float32', true), 'No gradient came.'],
  ['a page', circumstances({inPage: true}, 'float32', true), 'No gradient in this page.'],
  ['a tensor of another graph', circumstances({info: null}), 'No gradient yet.'],
  ['a session that is not known yet', circumstances({log: null}), 'The output does not require a gradient.'],
])('says why the gradient is missing: %s', (_name, given, expected) => {
  expect(missingGradient(given).text).toBe(expected);
});

it("tells what to do where it is the model's input, and there alone", () => {
  const why = (module: string): string => missingGradient(circumstances({series: {module, role: 'input'}})).why;
  expect(why('')).toContain('requires_grad_()');
  expect(why('head')).toContain('no_grad');
});
