/** Sets the theme on the page: the chosen one, else the system's. */

import {effect, signal} from '@preact/signals';
import {hostIsDark} from '../../host/tensorboard';
import * as store from '../state/choices';
import type {Theme} from '../state/choices';

const prefersDark = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
const systemIsDark = signal(prefersDark?.matches ?? false);

export function startTheme(): void {
  prefersDark?.addEventListener('change', ({matches}) => (systemIsDark.value = matches));
  effect(() => {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  });
}

function isDark(): boolean {
  return store.theme.value === 'auto' ? (hostIsDark.value ?? systemIsDark.value) : store.theme.value === 'dark';
}

const NEXT: Record<Theme, Theme> = {auto: 'light', light: 'dark', dark: 'auto'};

export function nextTheme(): void {
  store.theme.value = NEXT[store.theme.value];
}
