/** The keys, and what the screen means. */

import './Help.css';
import './dialog.css';

import {signal} from '@preact/signals';
import {Fragment} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {PARTS, partKey} from './state/parts';
import {giveFocus} from './controls/focus';
import {IconButton} from './controls/Icon';

export const isHelpOpen = signal(false);

type Keys = readonly (readonly [key: string, text: string])[];

const SECTIONS: readonly (readonly [title: string, keys: Keys])[] = [
  [
    'Everywhere',
    [
      ['/', 'Search a call by name or class, or by a regular expression'],
      [', .', 'Step back, step forward'],
      ['L', 'Follow the latest step'],
      ['C', 'Compare with other runs'],
      [PARTS.map(partKey).join(' '), `Show or hide: ${PARTS.join(', ')}`],
      ['T', 'Light, dark or the system’s theme'],
      ['Esc', 'Close, or deselect'],
      ['?', 'This help'],
    ],
  ],
  [
    'Graph',
    [
      ['← ↑ ↓ →', 'Select the next node'],
      ['Enter, double click', 'Open the inside of a call'],
      ['Backspace', 'Lead out of it'],
      ['P, drag to the right', 'Pin: show the node’s histograms'],
      ['F', 'Fit the graph'],
      ['S', 'Stack equal modules, or open the stacks'],
      ['+ −, wheel', 'Zoom'],
    ],
  ],
  [
    'X-ray',
    [
      ['← ↑ ↓ →', 'Move from cell to cell'],
      ['Enter, click', 'Go to the module and step of the cell'],
      ['Space', 'Fold a module, or unfold it'],
      ['+ −, wheel', 'Zoom in time'],
      ['0, double click', 'Show all steps'],
    ],
  ],
  [
    'Tensors',
    [
      ['j k', 'Next, previous tensor'],
      ['r R', 'Next, previous tensor of the module'],
      ['g', 'Value or gradient'],
      [', .', 'Previous, next kept step'],
      ['[ ]', 'Previous, next sample'],
      ["; '", 'Previous, next call'],
      ['( )', 'Previous, next label'],
    ],
  ],
];

export function Help() {
  return isHelpOpen.value ? <HelpBox /> : null;
}

function HelpBox() {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement);
  useLayoutEffect(() => {
    box.current?.focus();
    const back = before.current;
    return () => giveFocus(back);
  }, []);
  return (
    <div class="overlay" onPointerDown={(event) => event.target === event.currentTarget && close()}>
      <div
        ref={box}
        class="help"
        role="dialog"
        aria-modal="true"
        aria-label="Keys and help"
        tabIndex={-1}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === 'Escape') close();
        }}
      >
        <header>
          <h2>Keys</h2>
          <IconButton icon="close" label="Close (Esc)" onPress={close} />
        </header>
        <div class="help-sections">
          {SECTIONS.map(([title, keys]) => (
            <section key={title}>
              <h3>{title}</h3>
              <dl>
                {keys.map(([key, text]) => (
                  <div key={key}>
                    <dt>
                      <Keys text={key} />
                    </dt>
                    <dd>{text}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <h3>What the screen means</h3>
        <p class="dim">
          A box with a second edge behind it has an inside. Round boxes are the inputs, outputs and attached tensors of the open
          call. A dashed line carries data but no gradient. What is red and hatched has NaN or infinity at this step; the header leads to
          where that began. Below the time bar, dots are steps with kept tensors, triangles are notes, and other marks are updates that were skipped. The address holds everything you chose: copy it to share this screen.
        </p>
      </div>
    </div>
  );
}

/** Keys with blanks between them, and what else does the same, behind a comma. */
function Keys({text}: {text: string}) {
  const [keys = '', other] = text.split(/(?<=.), /);
  return (
    <>
      {keys.split(' ').map((key) => (
        <Fragment key={key}>
          <kbd>{key}</kbd>{' '}
        </Fragment>
      ))}
      {other !== undefined && <span class="dim">or {other}</span>}
    </>
  );
}

function close(): void {
  isHelpOpen.value = false;
}
