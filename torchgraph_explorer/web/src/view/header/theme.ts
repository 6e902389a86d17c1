/** Sets the theme on the page: the chosen one, else the system's. */

import {effect, signal} from '@preact/signals';
import {hostIsDark} from '../../host/tensorboard';
import * as choices from '../state/choices';
import type {Theme} from '../state/choices';

const prefersDark = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
const systemIsDark = signal(prefersDark?.matches ?? false);

export function startTheme(): void {
  prefersDark?.addEventListener('change', ({matches}) => (systemIsDark.value = matches));
  effect(() => {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  });
}

/** Whether the page is dark. */
export function isDark(): boolean {
  return choices.theme.value === 'auto' ? (hostIsDark.value ?? systemIsDark.value) : choices.theme.value === 'dark';
}

const NEXT: Record<Theme, Theme> = {auto: 'light', light: 'dark', dark: 'auto'};

export function nextTheme(): void {
  choices.theme.value = NEXT[choices.theme.value];
}
