/** Sliders for which call of a repeated module is shown: of those that are drawn, and of the one that is open. */

import './CallsBar.css';

import {page} from '../../api/client';
import type {ModuleGraph} from '../../api/types';
import {trail} from '../../graph/facts';
import {LEAST_CALLS, turnText} from '../../graph/folds';
import type {Loop} from '../../graph/folds';
import {callLabel} from '../../graph/labels';
import {nodeText} from '../../graph/facts';
import {TurnSlider} from '../controls/TurnSlider';
import {openCall} from '../state/navigate';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {couldFold, showTurn, timesOf} from './folding';
import {loops, scene} from './scene';

const MOST_LOOPS = 3;

/** The passes of a model have no boxes beside each other, since the first one is open: from two on there is a slider. */
const LEAST_PASSES = 2;

export function CallsBar() {
  const now = scene.value;
  const shownLoops = loops.value.slice(0, MOST_LOOPS);
  const canFold = couldFold.value;
  const open = now === null ? null : openLoop(now.graph, shown.inside.value);
  if (now === null || (shownLoops.length === 0 && !canFold && open === null)) return null;
  return (
    <div class="calls-bar">
      {open && <OpenSlider graph={now.graph} open={open} />}
      {shownLoops.map((loop) => (
        <LoopSlider key={loop.key} loop={loop} />
      ))}
      {page === null && (loops.value.some(({isStack}) => !isStack) || canFold) && (
        <button
          type="button"
          class="calls-single"
          aria-pressed={canFold}
          title={canFold ? 'Draw repeated calls as one node' : 'Draw each call as a node of its own'}
          onClick={() => (choices.areCallsSingle.value = !canFold)}
        >
          {canFold ? 'Fold repeated calls' : 'One by one'}
        </button>
      )}
    </div>
  );
}

function LoopSlider({loop}: {loop: Loop}) {
  const now = scene.value;
  const drawn = now === null ? [] : loop.nodes.flatMap((at) => now.layout.nodes[at] ?? []);
  const most = drawn.find(({all}) => all?.length === loop.count) ?? drawn[0];
  if (now === null || !most) return null;
  const names = drawn.map(({node}) => nodeText(now.graph, now.graph.nodes[node]!).label.replace(/ #\d+$/, ''));
  const label = names.length > 3 ? `${names.slice(0, 2).join(', ')} and ${names.length - 2} more` : names.join(', ');
  const callOf = (node: number | undefined): number => now.graph.calls[now.graph.nodes[node ?? -1]?.call ?? -1]?.call ?? loop.chosen;
  const last = Math.max(callOf(most.all?.at(-1)), timesOf(most) - 1);
  const text = loop.isStack ? `${loop.chosen + 1} of ${loop.count}` : turnText(callOf(most.node), loop.chosen, loop.count, last);
  return <TurnSlider label={label} name={label} turn={loop.chosen} count={loop.count} text={text} onChoose={(turn) => showTurn(loop, turn)} />;
}

/** The innermost open call that is one of many in a row: those calls, and how far inside of it one is. */
interface OpenLoop {
  calls: readonly number[];
  turn: number;
  /** The open calls from there on. */
  below: readonly number[];
}

function openLoop(graph: ModuleGraph, inside: number | null): OpenLoop | null {
  const open = trail(graph, inside);
  for (let depth = open.length - 1; depth >= 0; depth--) {
    const one = graph.calls[open[depth]!]!;
    const calls = graph.calls.flatMap(({module, parent}, at) => (module === one.module && parent === one.parent ? [at] : []));
    if (calls.length >= (one.parent === null ? LEAST_PASSES : LEAST_CALLS)) return {calls, turn: calls.indexOf(open[depth]!), below: open.slice(depth)};
  }
  return null;
}

function OpenSlider({graph, open: {calls, turn, below}}: {graph: ModuleGraph; open: OpenLoop}) {
  const here = below[0]!;
  const label = callLabel(graph, here, graph.calls[here]?.parent ?? null);
  const numberOf = (at: number): number => graph.calls[at]?.call ?? 0;
  const text = turnText(numberOf(here), turn, calls.length, numberOf(calls.at(-1)!));
  return <TurnSlider label={label} name={`${label}, which is open`} turn={turn} count={calls.length} text={text} onChoose={(next) => openCall(counterpart(graph, below, calls[next]!))} />;
}

/** The call in `other` that stands where the innermost of `below` does in the first of them; `other` itself where there is none. */
function counterpart(graph: ModuleGraph, [, ...below]: readonly number[], other: number): number {
  const [next] = below;
  if (next === undefined) return other;
  const siblings = (parent: number | null): number[] =>
    graph.calls.flatMap((call, at) => (call.parent === parent && call.module === graph.calls[next]?.module ? [at] : []));
  const found = siblings(other)[siblings(graph.calls[next]?.parent ?? null).indexOf(next)];
  return found === undefined ? other : counterpart(graph, below, found);
}
