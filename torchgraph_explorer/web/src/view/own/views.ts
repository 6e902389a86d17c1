/** Views of the user's own, which the server draws. */

import {computed, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {OwnViewInfo} from '../../api/types';
import * as choices from '../state/choices';

/** All that there are. */
export const ownViews: Signal<OwnViewInfo[]> = signal([]);

/** The one that was chosen, or the first. */
export const ownView: ReadonlySignal<OwnViewInfo | null> = computed(() => ownViews.value.find(({name}) => name === choices.ownView.value) ?? ownViews.value[0] ?? null);
