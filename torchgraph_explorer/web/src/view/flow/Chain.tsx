/** Which tensors are shown, in the order of execution. */

import {act, state} from './state';

export function Chain() {
  const {chain, tensors} = state.value!;
  const others = tensors.filter(({name}) => !chain.includes(name));
  const choose = (names: string[]) => void act('chain', {names});
  return (
    <div class="flow-chain" role="group" aria-label="Tensors">
      {chain.map((name, i) => (
        <span key={name} class="flow-link">
          {i > 0 && <i aria-hidden="true">→</i>}
          <code title={name}>
            <bdi>{name}</bdi>
          </code>
          {chain.length > 2 && (
            <button type="button" aria-label={`Remove ${name}`} title={`Remove ${name}`} onClick={() => choose(chain.filter((one) => one !== name))}>
              ×
            </button>
          )}
        </span>
      ))}
      <select aria-label="Add a tensor" value="" onChange={(event) => event.currentTarget.value && choose([...chain, event.currentTarget.value])}>
        <option value="">Add a tensor …</option>
        {others.map(({name, shape, gradient}) => (
          <option key={name} value={name}>
            {name} [{shape.join(', ')}]{gradient ? '' : ', no gradient'}
          </option>
        ))}
      </select>
    </div>
  );
}
