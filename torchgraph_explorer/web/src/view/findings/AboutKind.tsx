/** What the kind of the chosen finding means: fetched when it is opened, and left by links to other explanations. */

import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import type {JSX} from 'preact';
import {answers} from '../../api/client';
import type {Explanation, ExplanationBlock, Span} from '../../api/types';
import {partsInOrder, targetOf} from '../../findings/explanations';
import {titleOf} from '../../findings/names';
import {useAnswer} from '../useAnswer';

/** Follows a link to another explanation. */
type Follow = (name: string) => void;

/** Section in which the words of all explanations are explained. */
const WORDS = 'words';

const held = new Map<string, Explanation | null>();

export function AboutKind({kind}: {kind: string}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="finding-about" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>About this kind of finding</summary>
      {isOpen && <Pages kind={kind} />}
    </details>
  );
}

/** The explanation of the kind, or the one that was reached from there by links. */
function Pages({kind}: {kind: string}) {
  const [trail, setTrail] = useState<readonly string[]>([kind]);
  const box = useRef<HTMLDivElement>(null);
  const hasFollowed = useRef(false);
  const [name, before] = [trail.at(-1)!, trail.at(-2)];
  const {value, problem, isCurrent} = useAnswer(name, (abort) => answers.explanation(name, abort), held);
  useLayoutEffect(() => {
    if (hasFollowed.current) placeFocus(box.current!); // the link that was pressed is gone
    else box.current!.querySelector('section')?.scrollIntoView({block: 'nearest'});
  }, [trail, isCurrent]);
  const go = (next: readonly string[]): void => {
    hasFollowed.current = true;
    setTrail(next);
  };
  return (
    <div class="finding-about-text" ref={box}>
      {before !== undefined && (
        <p>
          <button type="button" class="link back" onClick={() => go(trail.slice(0, -1))}>
            Back to {titleOf(before)}
          </button>
        </p>
      )}
      {problem !== null && <p role="status">{problem}</p>}
      {problem === null && !isCurrent && <p class="dim">Loading …</p>}
      {problem === null && isCurrent && <Text explanation={value} follow={(next) => go([...trail, next])} isFirst={trail.length === 1} />}
    </div>
  );
}

/** At the top of what is shown, from where the keyboard goes on. */
function placeFocus(box: HTMLElement): void {
  const top = box.querySelector<HTMLElement>('.back') ?? box.closest('details')?.querySelector('summary');
  top?.focus();
}

interface TextProps {
  explanation: Explanation | null;
  follow: Follow;
  isFirst: boolean;
}

function Text({explanation, follow, isFirst}: TextProps) {
  if (explanation === null || (isFirst && !explanation.is_kind)) return <p class="dim">Nothing is known of this kind: a rule of your own has found it, or another release.</p>;
  const {name, title, is_kind: isKind} = explanation;
  return (
    <>
      {!isFirst && <h4 class="finding-about-title">{isKind ? titleOf(name) : title}</h4>}
      {partsInOrder(explanation).map((part, i) => (
        <section key={i}>
          {part.name !== '' && <h4>{part.name}</h4>}
          {part.blocks.map((block, k) => (
            <Block key={k} block={block} follow={follow} />
          ))}
        </section>
      ))}
      {isKind && (
        <p>
          <button type="button" class="link" onClick={() => follow(WORDS)}>
            Words that are used here
          </button>
        </p>
      )}
    </>
  );
}

function Block({block, follow}: {block: ExplanationBlock; follow: Follow}): JSX.Element {
  const line = (spans: readonly Span[]): JSX.Element[] => spans.map((span, i) => <Words key={i} span={span} follow={follow} />);
  if ('text' in block) return <p>{line(block.text)}</p>;
  if ('list' in block) {
    return (
      <ul>
        {block.list.map((item, i) => (
          <li key={i}>{line(item)}</li>
        ))}
      </ul>
    );
  }
  const [head = [], ...rows] = block.table;
  return (
    <table>
      <thead>
        <tr>
          {head.map((cell, i) => (
            <th key={i} scope="col">
              {line(cell)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}>
            {row.map((cell, k) => (
              <td key={k}>{line(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Words({span: {text, style, link}, follow}: {span: Span; follow: Follow}): JSX.Element {
  const words = style === 'code' ? <code>{text}</code> : style === 'emphasis' ? <em>{text}</em> : style === 'strong' ? <b>{text}</b> : <>{text}</>;
  if (link === undefined) return words;
  const target = targetOf(link);
  if ('explanation' in target) {
    return (
      <button type="button" class="link" onClick={() => follow(target.explanation)}>
        {words}
      </button>
    );
  }
  if ('address' in target) {
    return (
      <a href={target.address} target="_blank" rel="noreferrer">
        {words}
      </a>
    );
  }
  return <span title={`See ${target.page} in the documentation`}>{words}</span>;
}
