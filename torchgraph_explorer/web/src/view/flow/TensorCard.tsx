/** A tensor of the chain: its maps, which of them are shown, and what it exchanges with the selection. */

import {useEffect} from 'preact/hooks';
import {formatNumber} from '../../numberText';
import {askMaps} from '../../flow/api';
import {HeatMap} from './HeatMap';
import {PartOnShow} from './PartOnShow';
import {SelectByIndex} from './SelectByIndex';
import {TokenRow} from './TokenRow';
import {elementOf, elementText, isWithin, leadingDims} from '../../flow/maps';
import {factsOf, isStrong, largest, leadOf, leads, quantity, select, state, when} from './state';
import type {Maps, Quantity, TensorFacts} from '../../flow/types';
import {useAnswer} from '../useAnswer';

export function TensorCard({name}: {name: string}) {
  const facts = factsOf(name);
  if (facts === undefined) return null;
  const {selection, inputs, chain} = state.value!;
  const isSelected = selection?.tensor === name;
  const shown = shownQuantity(facts, isSelected);
  const maps = useMaps(facts, shown);
  const received = useMaps(facts, selection !== null && !isSelected && facts.gradient ? 'contribution' : null);
  const isInput = inputs.includes(name);
  const isTokens = isInput && !facts.gradient && facts.shape.length <= 2;
  useEffect(() => {
    if (maps.value !== null) largest.value = {...largest.value, [name]: sizeOf(maps.value)};
  }, [maps.value]);
  const side = selection === null || isSelected ? '' : chain.indexOf(name) < chain.indexOf(selection.tensor) ? 'receives' : 'sends';
  return (
    <section class="flow-card" aria-label={name} data-selected={isSelected || undefined}>
      <header>
        <h2 title={name}>
          <bdi>{name}</bdi>
        </h2>
        <span class="dim">
          [{facts.shape.join(', ')}] {facts.dtype}
        </span>
      </header>
      <Leads facts={facts} />
      <p class="dim">
        {shown === null ? 'no gradient' : shown}
        {maps.value !== null && maps.value.nonfinite < sizeIn(facts) && ` ${formatNumber(maps.value.low)} to ${formatNumber(maps.value.high)}`}
        {(maps.value?.nonfinite ?? 0) > 0 && <b class="flow-bad"> {maps.value!.nonfinite} NaN or ∞</b>}
      </p>
      {maps.value !== null && isTokens && <TokenRow facts={facts} maps={maps.value} />}
      {maps.value !== null && !isTokens && <HeatMap facts={facts} maps={maps.value} received={received.value} isInput={isInput} />}
      {maps.problem !== null && <p class="dim">{maps.problem}</p>}
      {side !== '' && received.value !== null && <Received facts={facts} maps={received.value} side={side} />}
      {isSelected && <Selected facts={facts} maps={maps.value} shown={shown} />}
      {maps.value !== null && !isTokens && <PartOnShow facts={facts} />}
      {facts.gradient && <SelectByIndex facts={facts} />}
    </section>
  );
}

function sizeIn(facts: TensorFacts): number {
  return facts.shape.reduce((product, size) => product * size, 1);
}

/** What is selected, and the sum of what its maps show. */
function Selected({facts, maps, shown}: {facts: TensorFacts; maps: Maps | null; shown: Quantity}) {
  const {elements} = state.value!.selection!;
  const lead = leadOf(facts);
  let [count, sum] = [0, 0];
  if (maps !== null) {
    const [, rows, columns] = maps.shape;
    maps.values.forEach((value, i) => {
      const element = elementOf(facts.shape, lead, {map: Math.floor(i / (rows * columns)), row: Math.floor(i / columns) % rows, column: i % columns});
      if (elements.some((one) => isWithin(element, one))) [count, sum] = [count + 1, sum + value];
    });
  }
  return (
    <div class="flow-selected-box">
      <p class="flow-selected">Selected: {elements.map(elementText).join(' + ')}</p>
      {count > 1 && (
        <p class="dim">
          {count} elements on these maps, sum of {shown}: <b>{formatNumber(sum)}</b>
        </p>
      )}
    </div>
  );
}

/** What a card shows as colour: a tensor without gradient shows values, and the selected one its gradient. */
function shownQuantity(facts: TensorFacts, isSelected: boolean): Quantity {
  if (!facts.gradient) return 'value';
  const isThere = state.value!.selection !== null && !isSelected;
  return quantity.value === 'contribution' && !isThere ? 'gradient' : quantity.value;
}

function useMaps(facts: TensorFacts, shown: Quantity | null) {
  const lead = leadOf(facts);
  const part = state.value!.parts[shown === 'contribution' ? 'selection' : 'tensors'];
  const wanted = shown === null ? null : {name: facts.name, quantity: shown, when: shown === 'contribution' ? ('now' as const) : when.value, lead};
  const key = wanted === null || !part?.isThere ? null : JSON.stringify([state.value!.key, wanted, part.stamp]);
  return useAnswer<Maps>(key, (signal) => askMaps(wanted!, signal));
}

function sizeOf({low, high}: Maps): number {
  return Math.max(Math.abs(low), Math.abs(high));
}

function Leads({facts}: {facts: TensorFacts}) {
  const lead = leadOf(facts);
  const choose = (dim: number, text: string) => {
    leads.value = {...leads.value, [facts.name]: lead.map((part, i) => (i === dim ? text : part))};
  };
  const dims = leadingDims(facts.shape);
  if (dims.length === 0) return null;
  return (
    <div class="flow-leads">
      {dims.map((size, dim) => (
        <label key={dim} class="select">
          <span class="select-label">{dimName(facts, dim)}</span>
          <select value={lead[dim]} aria-label={`${dimName(facts, dim)} of ${facts.name}`} onChange={(event) => choose(dim, event.currentTarget.value)}>
            {dim === dims.length - 1 && <option value="all">all {size}</option>}
            {[...Array(Math.min(size, 4096)).keys()].map((i) => (
              <option key={i} value={String(i)}>
                {i}
              </option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

function dimName({shape}: TensorFacts, dim: number): string {
  if (dim === 0) return 'sample';
  return shape.length === 4 && dim === 1 ? 'channel or head' : `dimension ${dim}`;
}

const LISTED = 6;

/** The strongest contributions on the maps that are shown, with their numbers. */
function Received({facts, maps, side}: {facts: TensorFacts; maps: Maps; side: string}) {
  const lead = leadOf(facts);
  const [, rows, columns] = maps.shape;
  const strongest = sizeOf(maps);
  const places = [...maps.values.keys()].filter((i) => isStrong(Math.abs(maps.values[i]!), strongest));
  places.sort((a, b) => Math.abs(maps.values[b]!) - Math.abs(maps.values[a]!));
  const elements = places.slice(0, LISTED).map((i) => {
    const cell = {map: Math.floor(i / (rows * columns)), row: Math.floor(i / columns) % rows, column: i % columns};
    return {element: elementOf(facts.shape, lead, cell), value: maps.values[i]!};
  });
  return (
    <div class="flow-received">
      <p>
        {side === 'receives' ? 'gets from the selection' : 'sends to the selection'} <b>{formatNumber(maps.sum)}</b>
        <span class="dim">
          {' '}
          in all; {places.length} of {maps.values.length} shown are above the threshold
        </span>
      </p>
      <ol>
        {elements.map(({element, value}) => (
          <li key={element.join()}>
            <button type="button" onClick={() => select(facts.name, element)}>
              {elementText(element)}
            </button>{' '}
            <span class={value < 0 ? 'flow-negative' : 'flow-positive'}>{formatNumber(value)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

