/**
 * TensorBoard as our host: its theme, whether it shows our tab, its filter of runs, and the address of its page.
 *
 * TensorBoard has no interface for these. A tab is an iframe of the same origin, so we read them from its page. In other hosts all
 * of this stays as it is at the start.
 */

import {effect, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {runFilterIn, viewIn, withView} from './address';

const ENTRY = /[?&]host=tensorboard\b/;

const hidden = signal(false);
const dark: Signal<boolean | null> = signal(null);
const filter = signal('');
let view = '';

/** Whether TensorBoard shows another tab, or nothing of ours is in sight. */
export const isHiddenByHost: ReadonlySignal<boolean> = hidden;
/** Whether TensorBoard's theme is the dark one; null elsewhere. */
export const hostIsDark: ReadonlySignal<boolean | null> = dark;

/** TensorBoard's filter of runs, a regular expression; empty elsewhere, and where it has none. */
export const hostRunFilter: ReadonlySignal<string> = filter;

/** TensorBoard writes its filter into its address as it is typed, without an event. */
const LOOK_MS = 500;

const host = tensorBoard();
if (host !== null) {
  followRunFilter(host);
  followTheme(host);
  followSight();
  followAddress(host);
}

/** The page that we are a tab of; null if it is not TensorBoard's, or not to be looked at. */
function tensorBoard(): Window | null {
  try {
    const isTab = typeof window !== 'undefined' && parent !== window && ENTRY.test(location.search);
    return isTab && parent.document.body ? parent : null;
  } catch {
    return null; // of another origin
  }
}

function followTheme({document}: Window): void {
  const look = (): void => void (dark.value = document.body.classList.contains('dark-mode'));
  look();
  new MutationObserver(look).observe(document.body, {attributes: true, attributeFilter: ['class']});
}

/** A tab cannot read which runs are ticked in TensorBoard: that is in no address and in no storage. */
function followRunFilter(host: Window): void {
  const look = (): void => void (filter.value = runFilterIn(host.location.search));
  look();
  setInterval(look, LOOK_MS);
  effect(() => void (hidden.value || look()));
}

/** TensorBoard keeps the iframe of a tab that it does not show, without a height; `document.hidden` is false then. */
function followSight(): void {
  const look = (entries: IntersectionObserverEntry[]): void => {
    const last = entries.at(-1);
    hidden.value = last !== undefined && (!last.isIntersecting || window.innerHeight === 0);
  };
  new IntersectionObserver(look).observe(document.documentElement);
  addEventListener('resize', () => void (hidden.value = window.innerHeight === 0));
}

/** A link to TensorBoard that is opened in its page, and the way back from another tab, which takes our part away. */
function followAddress(host: Window): void {
  view = location.hash.slice(1);
  host.addEventListener('hashchange', () => {
    const wanted = viewIn(host.location.hash);
    if (wanted !== null && wanted !== view) location.hash = wanted;
  });
  effect(() => void (hidden.value || write(host)));
}

/** Makes a link to TensorBoard's page reproduce what `fragment` says. */
export function tellHost(fragment: string): void {
  view = fragment;
  if (host !== null && !hidden.peek()) write(host);
}

function write({history, location: {hash}}: Window): void {
  const wanted = withView(hash, view);
  if (wanted !== null && wanted !== hash) history.replaceState(history.state, '', wanted);
}

/** Calls `act` each time that the tab comes into sight. */
export function whenShown(act: () => void): void {
  effect(() => void (hidden.value || act()));
}
