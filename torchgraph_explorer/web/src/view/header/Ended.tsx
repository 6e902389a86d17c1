/** Says, once the server has been silent for a while, how its runs are looked at after the training. */

import './Ended.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import {SILENT} from '../../api/errors';
import {hostIsDark} from '../../host/tensorboard';
import * as server from '../state/runs';

/** A server that begins anew is silent for a shorter time. */
const SILENT_MS = 4000;

export function Ended(): JSX.Element | null {
  const isLong = useSignal(false);
  // TensorBoard does not end with the training.
  const isSilent = server.connection.value === 'retrying' && server.problem.value === SILENT && hostIsDark.value === null;
  useEffect(() => {
    isLong.value = false;
    if (!isSilent) return undefined;
    const timer = setTimeout(() => (isLong.value = true), SILENT_MS);
    return () => clearTimeout(timer);
  }, [isSilent]);
  if (!isSilent || !isLong.value || server.logdir.value === '') return null;
  return (
    <p class="ended" role="status">
      A viewer ends with its training. This shows the runs again: <code>torchgraph serve {server.logdir.value}</code>
    </p>
  );
}
