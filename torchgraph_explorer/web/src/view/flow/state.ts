/** What is explored, as the server says, and how this page looks at it. */

import {batch, computed, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {isAbort, messageOf, RETRY_MS} from '../../api/errors';
import {askState, change} from '../../flow/api';
import {correspondingSpan, liningFor} from '../../flow/lining';
import type {Lining} from '../../flow/lining';
import {firstLead} from '../../flow/maps';
import type {Span} from '../../flow/maps';
import type {Element, FlowState, Quantity, TensorFacts, When} from '../../flow/types';

/** The server has a model behind it. */
export const hasFlow: Signal<boolean> = signal(false);
/** The user looks at the graph instead. */
export const isAway: Signal<boolean> = signal(false);
export const isFlowShown: ReadonlySignal<boolean> = computed(() => hasFlow.value && !isAway.value);

export const state: Signal<FlowState | null> = signal(null);
/** What went wrong with the last request, as a sentence. */
export const problem: Signal<string | null> = signal(null);

export const quantity: Signal<Quantity> = signal<Quantity>('gradient');
export const when: Signal<When> = signal<When>('now');
/** All maps have one scale, or each its own. */
export const isOneScale: Signal<boolean> = signal(false);
/** Contributions and links from here on: a share of the strongest one, in percent, or a value. */
export const threshold: Signal<{by: 'share' | 'value'; at: number}> = signal({by: 'share', at: 5});
export const most: Signal<number> = signal(60);
export const zoom: Signal<number> = signal(1);
/** What a click on the input does. */
export const isEditing: Signal<boolean> = signal(false);
/** The value that a brush sets. */
export const brush: Signal<number> = signal(1);
/** For each tensor, which of its maps are shown. */
export const leads: Signal<Record<string, string[]>> = signal({});
/** For each tensor, the part of its maps that is shown; all of them without. */
export const spans: Signal<Record<string, Span>> = signal({});
/** The parts that are shown of all tensors correspond. */
export const isLinked: Signal<boolean> = signal(false);
/** For each tensor, how it lies over the first one, where that was changed. */
export const linings: Signal<Record<string, Lining>> = signal({});
/** The region that was marked last. */
export const marked: Signal<{tensor: string; element: Element} | null> = signal(null);
/** The element or group under the pointer. */
export const pointed: Signal<{tensor: string; element: Element} | null> = signal(null);
/** The largest size that each tensor shows, for one scale. */
export const largest: Signal<Record<string, number>> = signal({});

export function factsOf(name: string): TensorFacts | undefined {
  return state.value?.tensors.find((one) => one.name === name);
}

export function leadOf(facts: TensorFacts): string[] {
  return leads.value[facts.name] ?? firstLead(facts.shape);
}

/** The tensors of the chain that lie over each other: those with as many dimensions as this one, with rows among them. */
export function linedUp({shape}: TensorFacts): TensorFacts[] {
  if (shape.length < 2) return [];
  return (state.value?.chain ?? []).flatMap((name) => factsOf(name) ?? []).filter((one) => one.shape.length === shape.length);
}

/** How a tensor lies over the first one of these. */
export function liningOf(facts: TensorFacts): Lining {
  return linings.value[facts.name] ?? liningFor(facts.shape, linedUp(facts)[0]?.shape ?? facts.shape);
}

/** Shows a part of a tensor's maps, or all of them, and the corresponding parts of the others where they are linked. */
export function show(facts: TensorFacts, span: Span | null): void {
  const others = isLinked.value ? linedUp(facts).filter(({name}) => name !== facts.name) : [];
  const changed = [facts.name, ...others.map(({name}) => name)];
  const kept = Object.fromEntries(Object.entries(spans.value).filter(([name]) => !changed.includes(name)));
  if (span === null) {
    spans.value = kept;
    return;
  }
  const corresponding = others.map((other) => [other.name, correspondingSpan(span, liningOf(facts), liningOf(other), other.shape)]);
  spans.value = {...kept, ...Object.fromEntries(corresponding), [facts.name]: span};
}

/** Whether a contribution or link is strong enough to be shown. */
export function isStrong(size: number, strongest: number): boolean {
  const {by, at} = threshold.value;
  return size > 0 && (by === 'value' ? size >= at : size >= (strongest * at) / 100);
}

/** Asks for the state, again and again, until `signal` is aborted. */
export async function follow(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const found = await askState(state.value?.version ?? -1, signal);
      batch(() => {
        if (found.version !== state.value?.version) state.value = found;
        if (isLost) problem.value = null;
        isLost = false;
      });
    } catch (cause) {
      if (isAbort(cause)) return;
      isLost = true;
      problem.value = messageOf(cause);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

let isLost = false;

/** Changes what is explored; says so if that fails. */
export async function act(what: string, values: Record<string, unknown> = {}): Promise<boolean> {
  try {
    await change(what, values, state.value?.key ?? '');
    problem.value = null;
    return true;
  } catch (cause) {
    problem.value = messageOf(cause);
    return false;
  }
}

/** Selects elements; with `adds`, beside those that are selected already. */
export function select(tensor: string, element: Element, adds = false): void {
  const known = state.value?.selection;
  const others = adds && known?.tensor === tensor ? known.elements : [];
  const without = others.filter((one) => JSON.stringify(one) !== JSON.stringify(element));
  const elements = without.length < others.length ? without : [...others, element];
  void act('select', elements.length > 0 ? {tensor, elements} : {tensor: null});
}

export function edit(values: Record<string, unknown>): void {
  void act('edit', values);
}
