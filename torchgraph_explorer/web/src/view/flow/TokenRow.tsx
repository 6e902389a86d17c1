/** An input of whole numbers, such as tokens: each can be given another one. */

import {edit, leadOf, state} from './state';
import {elementOf, flatPlace} from '../../flow/maps';
import type {Maps, TensorFacts} from '../../flow/types';

export function TokenRow({facts, maps}: {facts: TensorFacts; maps: Maps}) {
  const words = state.value?.words[facts.name];
  const [, rows, columns] = maps.shape;
  const cells = [...maps.values.keys()].map((i) => ({map: 0, row: Math.floor(i / columns), column: i % columns, value: maps.values[i]!}));
  const set = (element: number[], value: number) => {
    if (Number.isFinite(value)) edit({kind: 'cells', tensor: facts.name, places: [flatPlace(facts.shape, element)], values: [value]});
  };
  return (
    <div class="flow-tokens" style={{gridTemplateColumns: `repeat(${columns}, auto)`}} data-rows={rows}>
      {cells.map(({value, ...cell}) => {
        const element = elementOf(facts.shape, leadOf(facts), cell);
        const word = words?.[flatPlace(facts.shape, element)];
        return (
          <label key={element.join()} class="flow-token">
            {word !== undefined && <span title={word}>{word || '–'}</span>}
            <input
              type="number"
              value={value}
              aria-label={`${facts.name}[${element.join(', ')}]${word ? `, ${word}` : ''}`}
              onChange={(event) => set(element, Number(event.currentTarget.value))}
            />
          </label>
        );
      })}
    </div>
  );
}
