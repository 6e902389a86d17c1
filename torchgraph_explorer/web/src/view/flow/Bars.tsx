/** The bars of choices: in a narrow window, where they would take many lines, a press on their title opens each. */

import {useSignal} from '@preact/signals';
import {EditBar} from './EditBar';
import {Toolbar} from './Toolbar';
import {state} from './state';

export function Bars() {
  const isOfMaps = useSignal(false);
  const isOfInput = useSignal(false);
  return (
    <>
      <div class="flow-folds">
        <Title text="How it is shown" opens={isOfMaps} />
        {state.value!.edits !== null && <Title text="Edit the input" opens={isOfInput} />}
      </div>
      <Toolbar isOpen={isOfMaps.value} />
      <EditBar isOpen={isOfInput.value} />
    </>
  );
}

function Title({text, opens}: {text: string; opens: {value: boolean}}) {
  return (
    <button type="button" class="button" aria-expanded={opens.value} onClick={() => (opens.value = !opens.value)}>
      <span class="fold" aria-hidden="true" />
      {text}
    </button>
  );
}
