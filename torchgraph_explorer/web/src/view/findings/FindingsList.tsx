/** The findings above the tree of modules: root causes, and what follows from each folded below it. */

import './findings.css';

import {computed, signal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import type {Finding, Findings, Severity} from '../../api/types';
import {countText, findingKey, placesText, placeText, titleOf, whenText} from '../../findings/names';
import {equalRoots, kindsText, worst} from '../../findings/roots';
import type {Root} from '../../findings/roots';
import {counted, stepName, wholeNumber} from '../../numberText';
import {SeverityIcon} from './SeverityIcon';
import * as choices from '../state/choices';
import {openModel} from '../state/live';
import {connection} from '../state/runs';
import * as shown from '../state/shown';
import {elsewhere} from './elsewhere';
import {found, roots} from './found';
import {goToFinding} from './goToFinding';

/** Keys of the rows below which others are shown: what follows from a root cause, or root causes that say the same. */
const unfolded = signal<ReadonlySet<string>>(new Set());
/** Key of the row that the keyboard is at. */
const current = signal<string | null>(null);
const isOpen = signal(true);

const SEVERITIES: readonly Severity[] = ['error', 'warning', 'info'];

interface Row {
  key: string;
  /** Of a row that stands for several, the first of them. */
  finding: Finding;
  level: 1 | 2;
  /** What it can be unfolded to. */
  below: readonly Finding[];
  /** Whether it stands for several findings that say the same, and is none itself; or is one of them. */
  part: 'group' | 'member' | null;
}

const groups = computed(() => equalRoots(roots.value));

const rows = computed(() => groups.value.flatMap(rowsOf));

function rowsOf(equal: readonly Root[]): Row[] {
  const {finding, followers} = equal[0]!;
  const isGroup = equal.length > 1;
  const below = isGroup ? equal.map((one) => one.finding) : followers;
  const own: Row = {key: keyOf(equal), finding, level: 1, below, part: isGroup ? 'group' : null};
  if (!unfolded.value.has(own.key)) return [own];
  return [own, ...below.map((one): Row => ({key: findingKey(one), finding: one, level: 2, below: [], part: isGroup ? 'member' : null}))];
}

function keyOf(equal: readonly Root[]): string {
  const first = findingKey(equal[0]!.finding);
  return equal.length > 1 ? `equal ${first}` : first;
}

export function FindingsList() {
  const now = found.value;
  if (shown.model.value === null) return null;
  const hasSome = (now?.findings.length ?? 0) > 0;
  return (
    <section class={`findings${hasSome ? ' has-some' : ''}`} aria-label="Findings">
      {hasSome ? <Head findings={now!.findings} /> : <Nothing found={now} />}
      {hasSome && isOpen.value && <List />}
      {hasSome && isOpen.value && <Foot found={now!} />}
      <ElsewhereList />
      <News />
    </section>
  );
}

/** Why no finding is listed. */
function Nothing({found: now}: {found: Findings | null}) {
  const failure = now === null ? (shown.model.value?.findingsProblem.value ?? null) : null;
  const problem = now?.problem ?? (failure === null ? null : `${failure} Trying again.`);
  if (problem) {
    return (
      <p class="findings-none" role="status">
        <b>Findings are not known.</b> <span class="dim">{problem}</span>
      </p>
    );
  }
  if (now === null && connection.value === 'missing') return null;
  if (now === null || (now.looked_at === null && !now.is_complete)) return <p class="findings-none dim">Looking for findings …</p>;
  if (now.looked_at === null) return <p class="findings-none dim">No findings: no step was recorded{shown.isOver.value ? '' : ' yet'}.</p>;
  return (
    <p class={shown.isOver.value ? 'findings-none' : 'findings-none is-growing'} title={`No findings in ${stepsText(now)}`}>
      <b>No findings</b> <span class="dim">in {stepsText(now)}</span>
    </p>
  );
}

/** `40 steps, 0 to 39`; of a long or growing run, how many there are. */
function stepsText({looked_at: looked, recorded}: Findings): string {
  if (looked === null) return '';
  const [steps, all] = [wholeNumber(looked.steps), wholeNumber(recorded)];
  const which = looked.steps === recorded ? steps : `${steps} of ${all}`;
  if (recorded === 1) return `${stepName(looked.first)}, the only one`;
  return `${which} steps, ${wholeNumber(looked.first)} to ${wholeNumber(looked.last)}`;
}

function Head({findings}: {findings: readonly Finding[]}) {
  return (
    <h2 class="findings-head">
      <button type="button" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <span class="fold" aria-hidden="true" />
        Findings
        <Counts findings={findings} />
      </button>
    </h2>
  );
}

function Counts({findings}: {findings: readonly Finding[]}) {
  return (
    <>
      {SEVERITIES.map((severity) => {
        const count = findings.filter((one) => one.severity === severity).length;
        return (
          count > 0 && (
            <span key={severity} class="findings-count">
              <SeverityIcon severity={severity} />
              {count}
            </span>
          )
        );
      })}
    </>
  );
}

/** The other models of the run that have errors or warnings: without it, `No findings` would be taken for all of them. */
function ElsewhereList() {
  if (elsewhere.value.length === 0) return null;
  return (
    <ul class="findings-elsewhere" aria-label="Findings of other models">
      {elsewhere.value.map(({model, findings}) => (
        <li key={model}>
          <span>In</span>
          <button type="button" title={`Show ${model}`} onClick={() => openModel(choices.run.value!, model)}>
            {model}
          </button>
          <Counts findings={findings} />
        </li>
      ))}
    </ul>
  );
}

function Foot({found: now}: {found: Findings}) {
  const more = now.left_out > 0 ? `${wholeNumber(now.left_out)} more are not listed. ` : '';
  return (
    <p class="findings-foot dim">
      {more}Checked: {stepsText(now)}.{now.problem && ` ${now.problem}`}
    </p>
  );
}

function List() {
  const list = useRef<HTMLDivElement>(null);
  const key = choices.finding.value;
  useLayoutEffect(() => follow(key), [key, roots.value]);
  useLayoutEffect(() => {
    document.getElementById(idOf(current.value))?.scrollIntoView({block: 'nearest'});
  }, [current.value]);
  return (
    <div
      ref={list}
      class="findings-list"
      role="tree"
      tabIndex={0}
      aria-label="Findings, root causes first"
      aria-activedescendant={idOf(current.value ?? rows.value[0]?.key ?? null)}
      onFocus={() => (current.value ??= rows.value[0]?.key ?? null)}
      onKeyDown={keys}
    >
      {rows.value.map((row) => (
        <Item key={row.key} row={row} />
      ))}
    </div>
  );
}

/** What is chosen elsewhere is unfolded, and the keyboard goes on from there. */
function follow(key: string | null): void {
  if (key === null) return;
  const isIn = ({finding, followers}: Root, isGroup: boolean) => [...(isGroup ? [finding] : []), ...followers].some((one) => findingKey(one) === key);
  const equal = groups.peek().find((all) => all.some((root) => isIn(root, all.length > 1)));
  if (equal) toggle(keyOf(equal), true);
  if (rows.peek().some((row) => row.key === key)) current.value = key;
}

function idOf(key: string | null): string {
  return `finding-${key}`;
}

function Item({row}: {row: Row}) {
  const {key, finding, level, below, part} = row;
  const isGroup = part === 'group';
  const isUnfolded = unfolded.value.has(key);
  const className = shown.data.value?.session?.class_name ?? '';
  return (
    <div
      id={idOf(key)}
      class={`finding-row${level === 2 ? ' is-follower' : ''}${part === null ? '' : ` is-${part}`}${current.value === key ? ' is-current' : ''}`}
      role="treeitem"
      aria-level={level}
      aria-expanded={below.length > 0 ? isUnfolded : undefined}
      aria-selected={choices.finding.value === key}
      title={isGroup ? below.map((one) => placeText(one, className)).join('\n') : finding.text.replaceAll('`', '')}
      onClick={() => choose(row)}
    >
      <SeverityIcon severity={finding.severity} />
      <span class={`finding-title${part === 'member' ? ' sr-only' : ''}`}>
        {isGroup && <span class={`fold${isUnfolded ? ' is-open' : ''}`} aria-hidden="true" />}
        {titleOf(finding.kind)}
        {isGroup && `: ${counted(below.length, 'module')}`}
      </span>
      <span class="finding-place">
        <bdi>{isGroup ? placesText(below.map((one) => placeText(one, className))) : placeText(finding, className)}</bdi>
      </span>
      <span class="finding-when">{whenText(finding, found.value?.looked_at?.last ?? null)}</span>
      {below.length > 0 && !isGroup && (
        <span
          class="finding-leads"
          onClick={(event) => {
            event.stopPropagation();
            toggle(key, !isUnfolded);
          }}
        >
          <span class={`fold${isUnfolded ? ' is-open' : ''}`} aria-hidden="true" />
          <SeverityIcon severity={worst(below)} />
          <span class="finding-kinds">
            leads to {below.length}: {kindsText(below)}
          </span>
        </span>
      )}
    </div>
  );
}

/** Goes to a finding; a row that stands for several is unfolded, or folded. */
function choose({key, finding, part}: Row): void {
  current.value = key;
  if (part === 'group') toggle(key, !unfolded.peek().has(key));
  else goToFinding(finding);
}

function toggle(key: string, isUnfolded: boolean): void {
  if (unfolded.peek().has(key) === isUnfolded) return;
  const next = new Set(unfolded.peek());
  if (isUnfolded) next.add(key);
  else next.delete(key);
  unfolded.value = next;
}

const KEYS: Record<string, (index: number, row: Row) => void> = {
  ArrowDown: (index) => moveTo(index + 1),
  ArrowUp: (index) => moveTo(index - 1),
  Home: () => moveTo(0),
  End: () => moveTo(rows.peek().length - 1),
  ArrowRight: (index, {key, below}) => {
    if (below.length === 0) return;
    if (unfolded.peek().has(key)) moveTo(index + 1);
    else toggle(key, true);
  },
  ArrowLeft: (index, {key, level}) => {
    if (level === 1) return toggle(key, false);
    moveTo(rows.peek().findLastIndex((row, i) => i < index && row.level === 1));
  },
  Enter: (_, row) => choose(row),
  ' ': (_, row) => choose(row),
};

function moveTo(index: number): void {
  current.value = rows.peek()[index]?.key ?? current.peek();
}

function keys(event: JSX.TargetedKeyboardEvent<HTMLDivElement>): void {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const index = Math.max(0, rows.peek().findIndex(({key}) => key === current.peek()));
  const row = rows.peek()[index];
  if (row) act(index, row);
}

/** Says what is new while one looks on, and nothing when the page opens. */
function News() {
  const known = useRef<{model: unknown; keys: ReadonlySet<string>} | null>(null);
  const text = useRef('');
  const [model, now] = [shown.model.value, found.value];
  if (now !== null && now.looked_at !== null) {
    const before = known.current?.model === model ? known.current : null;
    const added = before === null ? [] : now.findings.filter((one) => !before.keys.has(findingKey(one)));
    if (added.length > 0) text.current = `New: ${countText(added.length)}, ${kindsText(added)}`;
    known.current = {model, keys: new Set(now.findings.map(findingKey))};
  }
  useEffect(() => () => (known.current = null), []);
  return (
    <span class="sr-only" role="status">
      {text.current}
    </span>
  );
}
