/** Selects an element or a region by its index. */

import {useState} from 'preact/hooks';
import {countOf, elementFrom} from '../../flow/region';
import {marked, select} from './state';
import type {TensorFacts} from '../../flow/types';

export function SelectByIndex({facts}: {facts: TensorFacts}) {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const choose = (adds: boolean) => {
    const found = elementFrom(text, facts.shape);
    setProblem(typeof found === 'string' ? found : '');
    if (typeof found === 'string') return;
    if (countOf(facts.shape, found) > 1) marked.value = {tensor: facts.name, element: found};
    select(facts.name, found, adds);
  };
  const example = facts.shape.map((size, i) => (i === facts.shape.length - 1 && size > 1 ? `0:${Math.min(2, size)}` : '0')).join(', ');
  return (
    <form class="flow-index" onSubmit={(event) => (event.preventDefault(), choose(false))}>
      <input value={text} placeholder={example} aria-label={`Index in ${facts.name}, such as ${example}`} aria-invalid={problem !== ''} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit" class="button">
        Select
      </button>
      <button type="button" class="button" title="Beside what is selected in this tensor" onClick={() => choose(true)}>
        Add
      </button>
      {problem !== '' && (
        <p class="flow-bad" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}
