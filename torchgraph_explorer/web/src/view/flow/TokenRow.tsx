/** An input of whole numbers, such as tokens: each can be given another one, by its number or its word. */

import {useId, useRef, useState} from 'preact/hooks';
import {NumberInput} from '../controls/NumberInput';
import {askWords} from '../../flow/api';
import {elementOf, elementText, flatPlace} from '../../flow/maps';
import {offers, tokenFrom} from '../../flow/tokens';
import type {Found} from '../../flow/tokens';
import {messageOf} from '../../api/errors';
import {edit, leadOf, problem, state} from './state';
import type {Maps, TensorFacts} from '../../flow/types';

export function TokenRow({facts, maps}: {facts: TensorFacts; maps: Maps}) {
  const words = state.value?.words[facts.name];
  const list = useId();
  const [found, setFound] = useState<readonly Found[]>([]);
  const asked = useRef('');
  const [, rows, columns] = maps.shape;
  const cells = [...maps.values.keys()].map((i) => ({map: 0, row: Math.floor(i / columns), column: i % columns, value: maps.values[i]!}));
  const set = (element: number[], value: number) => {
    if (Number.isFinite(value)) edit({kind: 'cells', tensor: facts.name, places: [flatPlace(facts.shape, element)], values: [value]});
  };
  const search = async (text: string) => {
    asked.current = text;
    const answer = await askWords(text).catch(() => []);
    if (asked.current === text) setFound(answer);
  };
  const setWord = async (element: number[], text: string) => {
    try {
      const token = tokenFrom(text, await askWords(text.replace(/#\s*\d+\s*$/, '')));
      if (typeof token === 'number') return set(element, token);
      problem.value = token;
    } catch (cause) {
      problem.value = messageOf(cause);
    }
  };
  return (
    <div class="flow-tokens" style={{gridTemplateColumns: `repeat(${columns}, auto)`}} data-rows={rows}>
      {cells.map(({value, ...cell}) => {
        const element = elementOf(facts.shape, leadOf(facts), cell);
        const word = words?.[flatPlace(facts.shape, element)];
        const name = `${facts.name}[${element.join(', ')}]`;
        return (
          <div key={element.join()} class="flow-token">
            {word !== undefined && (
              <WordField
                word={word}
                label={`Word at ${elementText(element)}`}
                list={list}
                onType={(text) => void search(text)}
                onChoose={(text) => void setWord(element, text)}
              />
            )}
            <NumberInput value={value} label={`${name}${word ? `, ${word}` : ''}`} onChoose={(token) => set(element, token)} />
          </div>
        );
      })}
      <datalist id={list}>
        {offers(found).map(({value, number}) => (
          <option key={number} value={value}>
            {number}
          </option>
        ))}
      </datalist>
    </div>
  );
}

interface WordFieldProps {
  word: string;
  label: string;
  list: string;
  onType: (text: string) => void;
  onChoose: (text: string) => void;
}

function WordField({word, label, list, onType, onChoose}: WordFieldProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const leave = () => {
    if (draft !== null && draft.trim() !== word.trim()) onChoose(draft);
    setDraft(null);
  };
  return (
    <input
      type="text"
      value={draft ?? word.trim()}
      placeholder="–"
      title={`${word} (type another word, or part of one)`}
      aria-label={label}
      list={list}
      onFocus={(event) => event.currentTarget.select()}
      onInput={(event) => (setDraft(event.currentTarget.value), onType(event.currentTarget.value))}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
      onBlur={leave}
    />
  );
}
