/** A view of the user's own, in an iframe that can reach nothing else. It is drawn again as the selection changes. */

import {computed, useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import './own.css';

import {parseKey} from '../../graph/keys';
import * as choices from '../state/choices';
import {isDark} from '../header/theme';
import * as shown from '../state/shown';
import {Subject} from '../tensors/Selectors';
import * as store from '../tensors/store';
import {addressOf} from './address';
import {RETRY_MS} from '../../api/errors';
import {useFailures, useReconnection} from './failures';
import {ownView} from './views';

/** A slider that moves asks for its last position only. */
const SETTLE_MS = 120;

export function OwnView(): JSX.Element {
  const [again, attempt, isFailed] = [useSignal(0), useSignal(0), useSignal(false)];
  const address = useMemo(() => computed(() => addressNow(again.value, attempt.value)), []).value;
  const repeat = (): void => void (attempt.value += 1);
  useReconnection(repeat);
  useFailures('/api/view?', (hasFailed) => {
    isFailed.value = hasFailed;
    if (hasFailed) setTimeout(repeat, RETRY_MS);
  });
  const {shown: source, isLate, onLoad} = useOneAtATime(address);
  const [kept, info] = [store.current.value, store.info.value];
  const name = ownView.value?.name ?? '';
  return (
    <div class="own-view">
      <div class="tensor-bar own-view-bar">
        {kept !== null && info !== null && <Subject kept={kept} info={info} />}
        <span class="own-view-end">
          <span class="dim" role="status">
            {isFailed.value ? 'The server did not answer. Trying again …' : isLate ? 'Drawing …' : ''}
          </span>
          <button type="button" class="button" onClick={() => (again.value += 1)} title="Load its file, and what that imports, again">
            Run again
          </button>
        </span>
      </div>
      {address === null && <p class="tensor-note">{ownView.value === null ? 'This server has no view of this name: torchgraph serve LOGDIR --view FILE.py' : 'Loading …'}</p>}
      {source !== null && <iframe title={`View ${name}`} sandbox="allow-scripts" src={source} onLoad={onLoad} aria-busy={isLate} data-late={isLate || undefined} />}
    </div>
  );
}

function addressNow(again: number, attempt: number): string | null {
  const [view, model, data] = [ownView.value, shown.model.value, shown.data.value];
  if (view === null || model === null || data === null || !store.isKnown.value) return null;
  const {sample, pick, rank} = choices.tensors.value;
  const tensor = store.info.value;
  const step = tensor === null ? shown.step.value : store.step.value;
  return addressOf({view, model: model.name, step, module: parseKey(choices.selected.value ?? '')?.module ?? null, tensor, sample, index: pick, rank, theme: isDark() ? 'dark' : 'light', again, attempt});
}

/**
 * What the iframe shows: the address, unless an earlier page is still being drawn. Then the last address follows it, so
 * that the server draws one page at a time.
 */
function useOneAtATime(address: string | null): {shown: string | null; isLate: boolean; onLoad: () => void} {
  const [source, setSource] = useState<string | null>(null);
  const [loaded, setLoaded] = useState<string | null>(null);
  const isDrawing = useRef(false);
  const wanted = useRef(address);
  wanted.current = address;
  const next = (): void => {
    if (isDrawing.current) return;
    setSource((before) => {
      isDrawing.current = wanted.current !== null && wanted.current !== before;
      return wanted.current;
    });
  };
  useEffect(() => {
    const timer = setTimeout(next, source === null ? 0 : SETTLE_MS);
    return () => clearTimeout(timer);
  }, [address]);
  const onLoad = (): void => {
    isDrawing.current = false;
    setLoaded(source);
    if (wanted.current !== source) next();
  };
  return {shown: source, isLate: address !== null && address !== loaded, onLoad};
}
