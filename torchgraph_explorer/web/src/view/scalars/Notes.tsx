/** The sentences that the training loop noted; a press goes to the step. */

import {formatCount, stepName, wholeNumber} from '../../numberText';
import type {StepNote} from '../../api/types';
import * as choices from '../state/choices';

/** The latest so many are listed. */
const MOST = 200;

export function Notes({notes}: {notes: readonly StepNote[]}) {
  if (notes.length === 0) return null;
  const listed = notes.slice(-MOST);
  return (
    <section class="panel-section scalars-notes">
      <h3>Notes</h3>
      {listed.length < notes.length && (
        <p class="panel-note">
          The last {listed.length} of {formatCount(notes.length)}.
        </p>
      )}
      <ol>
        {listed.map((note, i) => (
          <li key={i}>
            <button type="button" title={`Go to ${stepName(note.step)}`} onClick={() => (choices.step.value = note.step)}>
              <b>{wholeNumber(note.step)}</b> <span>{note.text}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
