/** An input of whole numbers, such as tokens: each can be given another one. */

import {edit, leadOf} from './state';
import {elementOf, flatPlace} from '../../flow/maps';
import type {Maps, TensorFacts} from '../../flow/types';

export function TokenRow({facts, maps}: {facts: TensorFacts; maps: Maps}) {
  const [, rows, columns] = maps.shape;
  const cells = [...maps.values.keys()].map((i) => ({map: 0, row: Math.floor(i / columns), column: i % columns, value: maps.values[i]!}));
  const set = (element: number[], value: number) => {
    if (Number.isFinite(value)) edit({kind: 'cells', tensor: facts.name, places: [flatPlace(facts.shape, element)], values: [value]});
  };
  return (
    <div class="flow-tokens" style={{gridTemplateColumns: `repeat(${columns}, auto)`}} data-rows={rows}>
      {cells.map(({value, ...cell}) => {
        const element = elementOf(facts.shape, leadOf(facts), cell);
        return (
          <input
            key={element.join()}
            type="number"
            value={value}
            aria-label={`${facts.name}[${element.join(', ')}]`}
            onChange={(event) => set(element, Number(event.currentTarget.value))}
          />
        );
      })}
    </div>
  );
}
