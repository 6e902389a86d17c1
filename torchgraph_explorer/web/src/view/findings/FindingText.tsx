/** The words of a rule, in which names stand in backquotes. Names of modules lead there. */

import {textPieces, withStepsApart} from '../../findings/names';
import {goToModule} from '../goToPlace';
import * as shown from '../state/shown';

export function FindingText({text}: {text: string}) {
  return <>{textPieces(text).map((piece, i) => (i % 2 === 1 ? <Name key={i} name={piece} /> : withStepsApart(piece)))}</>;
}

function Name({name}: {name: string}) {
  const isModule = shown.graph.value?.modules.some((one) => one.name === name);
  if (!isModule) return <code>{name}</code>;
  return (
    <button type="button" title="Show this module" onClick={() => goToModule(name)}>
      <code>{name}</code>
    </button>
  );
}
