/** Jumps to a call by its name or class. */

import {computed, signal} from '@preact/signals';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {classText, nameText} from '../graph/facts';
import {familyOf} from '../graph/families';
import {openable} from './pane/scene';
import {search} from '../graph/search';
import {callKey} from '../graph/keys';
import type {NodeKey} from '../graph/keys';
import * as choices from './state/choices';
import * as shown from './state/shown';
import {giveFocus} from './controls/focus';
import {makeWay} from './layout/sides';

export const isSearching = signal(false);
const typed = signal('');
const chosen = signal(0);

interface Found {
  key: NodeKey;
  name: string;
  className: string;
  detail: string;
  family: string;
}

const everything = computed<Found[]>(() => {
  const graph = shown.graph.value;
  if (!graph) return [];
  return graph.calls.flatMap((call, i) => {
    const module = graph.modules[call.module];
    if (!module) return [];
    const family = familyOf(module.class_name, openable.value.has(i));
    return [{key: callKey(graph, i), name: nameText(module), className: module.class_name, detail: classText(module, call), family}];
  });
});

const result = computed(() => search(everything.value, typed.value));
const found = computed(() => result.value.items);

export function Search() {
  return isSearching.value ? <SearchBox /> : null;
}

function SearchBox() {
  const input = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement);
  useLayoutEffect(() => {
    // Before the next key comes: who types `/conv` fast must not lose the c.
    typed.value = '';
    chosen.value = 0;
    input.current?.focus();
    const back = before.current;
    return () => giveFocus(back);
  }, []);
  const at = Math.min(chosen.value, found.value.length - 1);
  return (
    <div class="overlay" onPointerDown={(event) => event.target === event.currentTarget && close()}>
      <div class="search" role="dialog" aria-modal="true" aria-label="Search the model">
        <input
          ref={input}
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="search-results"
          aria-activedescendant={at < 0 ? undefined : `found-${at}`}
          aria-label="Name or class, or a regular expression"
          aria-describedby="search-problem"
          placeholder="Name or class: layer1 conv, conv2|head"
          spellcheck={false}
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            chosen.value = 0;
          }}
          onKeyDown={keys}
        />
        <p id="search-problem" class="search-problem" role="status">
          {result.value.problem}
        </p>
        <ul id="search-results" role="listbox" aria-label="Calls">
          {found.value.map((one, i) => (
            <Result key={one.key} found={one} index={i} isChosen={i === at} />
          ))}
          {found.value.length === 0 && <li class="search-none">Nothing of that name or class is called in this graph.</li>}
        </ul>
      </div>
    </div>
  );
}

function Result({found: one, index, isChosen}: {found: Found; index: number; isChosen: boolean}) {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) item.current?.scrollIntoView({block: 'nearest'});
  }, [isChosen]);
  return (
    <li
      ref={item}
      id={`found-${index}`}
      role="option"
      aria-selected={isChosen}
      onClick={() => jump(one.key)}
      onPointerMove={() => (chosen.value = index)}
    >
      <i class="swatch" style={{background: `var(--family-${one.family})`}} />
      <span class="search-name">{one.name}</span>
      <span class="dim">{one.detail}</span>
    </li>
  );
}

function keys(event: KeyboardEvent): void {
  const last = found.value.length - 1;
  const move = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (move !== undefined) chosen.value = Math.max(0, Math.min(last, chosen.value + move));
  else if (event.key === 'Enter') jump(found.value[Math.min(chosen.value, last)]?.key);
  else if (event.key === 'Escape') close();
  else if (event.key !== 'Tab') return;
  event.preventDefault();
  event.stopPropagation();
}

function jump(key: NodeKey | undefined): void {
  if (key === undefined) return;
  close();
  makeWay();
  choices.find(key);
}

function close(): void {
  isSearching.value = false;
}
