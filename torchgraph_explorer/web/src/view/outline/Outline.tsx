/** The tree of modules beside the graph. Only the rows in sight are in the page. */

import './Outline.css';

import {computed, signal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {familyOf} from '../../graph/families';
import {ancestors, outlineOf, parentName, rowsOf} from '../../graph/outline';
import type {OutlineRow} from '../../graph/outline';
import {markText, markWords} from '../../graph/nonfinite';
import {badgeWords, severityOf} from '../../findings/places';
import type {FindingMark} from '../../findings/places';
import {findingMarksShown} from '../findings/found';
import {SeverityIcon} from '../findings/SeverityIcon';
import {openable, pinColours} from '../pane/scene';
import {marks} from '../pane/marks';
import {parseKey} from '../../graph/keys';
import {openCall} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Icon} from '../controls/Icon';
import {togglePin} from '../pinning';
import {makeWay} from '../layout/sides';

const ROW_PX = 24;
const SPARE_ROWS = 8;

const tree = computed(() => (shown.graph.value ? outlineOf(shown.graph.value) : null));
const unfolded = signal<ReadonlySet<string>>(new Set(['']));
const rows = computed(() => (tree.value ? rowsOf(tree.value, unfolded.value) : []));
const scrolled = signal(0);
const height = signal(600);
/** Name of the module that the keyboard is at; it follows the selection. */
const current = signal('');

export function Outline() {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = list.current as HTMLDivElement;
    const watcher = new ResizeObserver(() => {
      const wasInSight = isInSight(element, height.peek());
      height.value = element.clientHeight;
      if (wasInSight) scrollTo(element, current.peek()); // findings that come later take some of its room
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  useFollowSelection(list);
  const first = Math.max(0, Math.floor(scrolled.value / ROW_PX) - SPARE_ROWS);
  const shown = rows.value.slice(first, Math.ceil((scrolled.value + height.value) / ROW_PX) + SPARE_ROWS);
  return (
    <div
      ref={list}
      class="outline"
      role="tree"
      tabIndex={0}
      aria-label="Modules"
      aria-activedescendant={`module-${current.value}`}
      onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
      onKeyDown={keys}
    >
      <div class="outline-inner" style={{height: `${rows.value.length * ROW_PX}px`}}>
        {shown.map((row, i) => (
          <Row key={row.module.name} row={row} top={(first + i) * ROW_PX} />
        ))}
      </div>
    </div>
  );
}

/** Whether the current row is within so much of the list. */
function isInSight({scrollTop}: HTMLElement, room: number): boolean {
  const top = ROW_PX * rows.peek().findIndex(({module}) => module.name === current.peek());
  return top >= 0 && top + ROW_PX > scrollTop && top < scrollTop + room;
}

/** Unfolds and scrolls to the module of what is selected, or of the call that is open. */
function useFollowSelection(list: {current: HTMLDivElement | null}): void {
  const name = shownModule();
  const wanted = useRef<string | null>(null);
  useLayoutEffect(() => {
    // Before the next key comes, which goes on from here.
    if (name === null) return;
    current.value = name;
    const around = ancestors(name).filter((one) => !unfolded.value.has(one));
    if (around.length > 0) unfolded.value = new Set([...unfolded.value, ...around]);
    wanted.current = name;
  }, [name, shown.graph.value === null]);
  useLayoutEffect(() => {
    // What was unfolded around it has no room in the list before it is drawn.
    const index = rows.value.findIndex(({module}) => module.name === wanted.current);
    if (wanted.current === null || index < 0 || (list.current?.scrollHeight ?? 0) < (index + 1) * ROW_PX) return;
    scrollTo(list.current, wanted.current);
    wanted.current = null;
  });
}

function shownModule(): string | null {
  const inside = shown.inside.value;
  const graph = shown.graph.value;
  if (choices.selected.value !== null) return parseKey(choices.selected.value)?.module ?? null;
  return graph && inside !== null ? (graph.modules[graph.calls[inside]?.module ?? 0]?.name ?? null) : null;
}

function scrollTo(list: HTMLDivElement | null, name: string): void {
  const index = rows.value.findIndex(({module}) => module.name === name);
  if (!list || index < 0) return;
  const top = index * ROW_PX;
  if (top < list.scrollTop) list.scrollTop = top - ROW_PX;
  else if (top + ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = top + 2 * ROW_PX - list.clientHeight;
}

function Row({row: {module, depth, isOpen}, top}: {row: OutlineRow; top: number}) {
  const call = module.calls[0];
  const isCurrent = current.value === module.name;
  const colour = module.calls.map((key) => pinColours.value.get(key)).find((one) => one !== undefined);
  const index = call === undefined ? undefined : shown.callIndex.value.get(call);
  const open = shown.inside.value;
  const isInside = open !== null && module.calls.some((key) => shown.callIndex.value.get(key) === open);
  const mark = marks.value.modules.get(module.name);
  const findings = findingMarksShown.value.modules.get(module.name);
  return (
    <div
      id={`module-${module.name}`}
      class={`outline-row${call === undefined ? ' is-idle' : ''}${isInside ? ' is-inside' : ''}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-expanded={module.children.length ? isOpen : undefined}
      aria-selected={isCurrent}
      title={call === undefined ? `${module.name} (${module.className}): not called in this graph` : `${module.name} ${module.className}`}
      style={{top: `${top}px`, paddingLeft: `${4 + depth * 14}px`}}
      onClick={() => {
        goTo(module.name);
        if (call === undefined) toggle(module.name);
        else makeWay();
      }}
      onDblClick={() => index !== undefined && openable.value.has(index) && openCall(index)}
    >
      <span
        class={`outline-twist${isOpen ? ' is-open' : ''}`}
        onClick={(event) => {
          event.stopPropagation();
          toggle(module.name);
        }}
      >
        {module.children.length > 0 && <Icon name="chevron" />}
      </span>
      <i
        class="swatch"
        style={{background: `var(--family-${familyOf(module.className, index !== undefined && openable.value.has(index))})`}}
      />
      <span class="outline-label">
        <bdi>{module.label}</bdi>
      </span>
      {module.name !== '' && <span class="outline-class">{module.className}</span>}
      {module.calls.length > 1 && <span class="outline-calls">×{module.calls.length}</span>}
      {mark && (
        <span class={`outline-bad${mark.isInside ? ' is-inside' : ''}`} title={markWords(mark)}>
          {markText(mark)}
        </span>
      )}
      {findings && <FindingCount mark={findings} isOpen={isOpen} />}
      {colour !== undefined && <i class="outline-pin" style={{background: `var(--pin-${colour})`}} />}
    </div>
  );
}

/** How many findings there are, of what is folded below it too. */
function FindingCount({mark, isOpen}: {mark: FindingMark; isOpen: boolean}) {
  const shown = isOpen ? {own: mark.own, inside: []} : mark;
  const count = shown.own.length + shown.inside.length;
  if (count === 0) return null;
  return (
    <span class={`outline-finding${shown.own.length === 0 ? ' is-inside' : ''}`} title={badgeWords(shown)}>
      <SeverityIcon severity={severityOf(shown)} />
      {count}
    </span>
  );
}

/** Goes to a row, and shows its module's first call, if it has one. */
function goTo(name: string): void {
  const row = rows.value.find(({module}) => module.name === name);
  if (!row) return;
  current.value = name;
  const call = row.module.calls[0];
  if (call !== undefined) choices.find(call);
  else choices.wanted.value = null; // a call that the graph has yet to show would lead back to it
}

function toggle(name: string, isOpen = !unfolded.value.has(name)): void {
  const next = new Set(unfolded.value);
  if (isOpen) next.add(name);
  else next.delete(name);
  unfolded.value = next;
}

const KEYS: Record<string, (index: number, row: OutlineRow) => void> = {
  ArrowDown: (index) => goTo(rows.value[index + 1]?.module.name ?? current.value),
  ArrowUp: (index) => goTo(rows.value[index - 1]?.module.name ?? current.value),
  ArrowRight: (index, row) => (row.isOpen ? KEYS.ArrowDown?.(index, row) : toggle(row.module.name, true)),
  ArrowLeft: (_, row) => (row.isOpen ? toggle(row.module.name, false) : goTo(parentName(row.module.name))),
  Enter: (_, row) => {
    const call = shown.callIndex.value.get(row.module.calls[0] ?? '');
    if (call !== undefined && openable.value.has(call)) openCall(call);
  },
  p: (_, row) => row.module.calls[0] !== undefined && togglePin(row.module.calls[0]),
};

function keys(event: JSX.TargetedKeyboardEvent<HTMLDivElement>): void {
  const index = rows.value.findIndex(({module}) => module.name === current.value);
  const row = rows.value[index];
  if (!row || !KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  KEYS[event.key]?.(index, row);
  scrollTo(event.currentTarget, current.value);
}
