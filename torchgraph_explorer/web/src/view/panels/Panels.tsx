/** The right pane: a column for every pinned node. */

import '../../charts/charts.css';
import './panels.css';

import type {JSX} from 'preact';

import {pins} from '../state/choices';
import {Column} from './Column';
import {liveHistories} from '../../panels/live';

/** All panels side by side, scrolled when they do not fit. */
export function Panels(): JSX.Element {
  const shown = pins.value;
  return (
    <div class="panels">
      <Problem />
      {shown.length === 0 ? (
        <Empty />
      ) : (
        <div class="panels-columns">
          {shown.map((pin) => (
            <Column key={pin.key} pin={pin} />
          ))}
        </div>
      )}
    </div>
  );
}

function Empty(): JSX.Element {
  return (
    <div class="panels-empty">
      <p>
        <strong>No node is pinned.</strong>
      </p>
      <p>
        Drag a node here, or select one and press <kbd>p</kbd>, to see its tensors and gradients over time.
      </p>
    </div>
  );
}

function Problem(): JSX.Element | null {
  const problem = liveHistories.problem.value;
  if (problem === null) return null;
  return (
    <p class="panels-problem" role="status">
      {problem} Trying again.
      <button type="button" onClick={() => liveHistories.retry()}>
        Now
      </button>
    </p>
  );
}
