/** The gradient flow of a model that is behind the server: maps of a chain of tensors, and the links between them. */

import './Flow.css';

import {useEffect} from 'preact/hooks';
import {IconButton} from '../controls/Icon';
import {nextTheme} from '../header/theme';
import * as choices from '../state/choices';
import * as server from '../state/runs';
import {Bars} from './Bars';
import {Chain} from './Chain';
import {SankeyView} from './SankeyView';
import {TensorCard} from './TensorCard';
import {spanOfElement} from '../../flow/region';
import {act, edit, factsOf, follow, isAway, marked, problem, show, spans, state} from './state';

export function FlowPage() {
  useEffect(() => {
    const stop = new AbortController();
    void follow(stop.signal);
    addEventListener('keydown', keys);
    document.title = 'Flow · torchgraph';
    return () => {
      stop.abort();
      removeEventListener('keydown', keys);
    };
  }, []);
  const now = state.value;
  return (
    <div class="flow">
      <Header />
      <Faults />
      {now !== null && now.chain.length > 0 && (
        <main class="flow-main">
          <Chain />
          <Bars />
          <div class="flow-cards">
            {now.chain.map((name) => (
              <TensorCard key={name} name={name} />
            ))}
          </div>
          <SankeyView />
        </main>
      )}
    </div>
  );
}

function Header() {
  const now = state.value;
  const theme = choices.theme.value;
  const hasRuns = (server.runs.value?.length ?? 0) > 0;
  return (
    <header class="flow-header">
      <h1>Gradient flow</h1>
      <span class="dim">{now?.title ?? 'Waiting for the model'}</span>
      {now !== null && now.target.now !== '' && <TargetValue />}
      <div class="spacer" />
      <Busy />
      {hasRuns && (
        <button type="button" class="button" onClick={() => (isAway.value = true)}>
          Graph
        </button>
      )}
      <IconButton icon={theme} label={`Theme: ${theme === 'auto' ? "the system's" : theme} (T)`} onPress={nextTheme} />
      <button type="button" class="button" title="Ends the session: the program that waits goes on" onClick={() => void act('end')}>
        End
      </button>
    </header>
  );
}

function TargetValue() {
  const {target, edits} = state.value!;
  return (
    <span>
      {target.name} <b>{target.now}</b>
      {edits?.edited && <span class="dim"> (before {target.before})</span>}
    </span>
  );
}

/** What is computed, once that takes longer than half a second: the style shows it late. */
function Busy() {
  const busy = state.value?.busy;
  if (!busy) return null;
  const share = busy.count > 0 ? ` ${Math.round((100 * busy.done) / busy.count)} %` : '';
  return (
    <span class="flow-busy" role="status">
      {busy.count > 0 ? `${busy.what}:` : 'Computing'}
      {share}
      {busy.count > 0 && <progress max={busy.count} value={busy.done} aria-label={busy.what} />}
      {busy.count > 0 && (
        <button type="button" class="button" onClick={() => void act('cancel')}>
          Cancel
        </button>
      )}
    </span>
  );
}

/** What the model or the last request has to complain of. */
function Faults() {
  const parts = state.value?.parts ?? {};
  const faults = ['model', 'tensors', 'selection'].flatMap((name) => parts[name]?.fault ?? []);
  const all = [...new Set([...(problem.value === null ? [] : [problem.value]), ...faults])];
  if (all.length === 0) return null;
  return (
    <ul class="flow-faults" role="alert">
      {all.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}

function escape(): void {
  marked.value = null;
  void act('select', {tensor: null});
}

function zoomToMark(): void {
  const region = marked.value;
  const facts = region === null ? undefined : factsOf(region.tensor);
  if (facts !== undefined) show(facts, spanOfElement(facts.shape, region!.element));
}

const TEXT_FIELDS = 'input:not([type=checkbox], [type=radio], [type=range]), select, textarea';

function keys(event: KeyboardEvent): void {
  const target = event.target instanceof Element ? event.target : null;
  if (event.defaultPrevented || event.altKey || target?.matches(TEXT_FIELDS)) return;
  const isCommand = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (isCommand && key === 'z') edit({kind: event.shiftKey ? 'redo' : 'undo'});
  else if (isCommand && key === 'y') edit({kind: 'redo'});
  else if (!isCommand && key === 't') nextTheme();
  else if (key === 'escape') escape();
  else if (!isCommand && key === 'z') zoomToMark();
  else if (!isCommand && key === 'a') spans.value = {};
  else return;
  event.preventDefault();
}
