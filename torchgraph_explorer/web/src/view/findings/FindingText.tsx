/** The words of a rule, in which names stand in backquotes. */

import {textPieces, withStepsApart} from '../../findings/names';

export function FindingText({text}: {text: string}) {
  return <>{textPieces(text).map((piece, i) => (i % 2 === 1 ? <code key={i}>{piece}</code> : withStepsApart(piece)))}</>;
}
