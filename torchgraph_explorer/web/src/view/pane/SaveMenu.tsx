/** Saves what the graph pane shows as a picture. */

import './SaveMenu.css';

import {signal} from '@preact/signals';
import {useRef} from 'preact/hooks';
import {page} from '../../api/client';
import {messageOf} from '../../api/errors';
import {scene} from './scene';
import type {Scene} from './scene';
import {chosenOthers} from '../comparison/state';
import * as choices from '../state/choices';
import {logdir} from '../state/runs';
import * as shown from '../state/shown';
import {detail, sight} from './camera';
import {download, downloadHint, fileName} from '../controls/download';
import {Icon} from '../controls/Icon';
import {Menu} from '../controls/Menu';
import {exportCommand} from './exportCommand';
import {pictureOf, pngOf} from './picture';
import type {Picture} from './picture';

type Kind = 'svg' | 'png';

const problem = signal<string | null>(null);

export function SaveMenu() {
  const box = useRef<HTMLDetailsElement>(null);
  const put = (kind: Kind): void => {
    problem.value = null;
    save(kind).then(
      () => (box.current!.open = false),
      (cause: unknown) => (problem.value = `The picture could not be saved: ${messageOf(cause)}`),
    );
  };
  return (
    <Menu
      box={box}
      class="save-menu"
      button={
        <summary class="icon-button" aria-label="Save the graph as a picture" title="Save the graph as a picture">
          <Icon name="save" />
        </summary>
      }
    >
      <div class="save-box" role="group" aria-label="Save the graph as a picture">
        <button type="button" class="button" onClick={() => put('svg')}>
          Save as SVG
        </button>
        <button type="button" class="button" onClick={() => put('png')}>
          Save as PNG
        </button>
        {downloadHint && <span class="dim">{downloadHint}</span>}
        <ExportHint />
        <span class="save-problem" role="status">
          {problem.value}
        </span>
      </div>
    </Menu>
  );
}

/** How others can see the run: the address of this page may be of no use to them. An exported page is that already. */
function ExportHint() {
  const run = choices.run.value;
  if (page !== null || run === null) return null;
  const runs = [run, ...chosenOthers.value.map((other) => other.run)];
  return (
    <div class="save-export">
      <span class="dim">In a terminal, this makes one HTML file to pass on:</span>
      <code>{exportCommand(logdir.value, runs)}</code>
    </div>
  );
}

async function save(kind: Kind): Promise<void> {
  const now = scene.peek();
  if (now === null) throw new Error('Nothing is drawn.');
  const step = shown.step.peek();
  const names = [choices.run.peek(), choices.model.peek(), insideOf(now), step === null ? null : `step ${step}`];
  const picture = await wholePicture(now, names.filter(Boolean).join(' · '));
  const content = kind === 'svg' ? new Blob([picture.svg], {type: 'image/svg+xml'}) : await pngOf(picture);
  download(content, fileName(names, kind));
}

/** The module whose inside is drawn; null for the model itself. */
function insideOf({graph, inside}: Scene): string | null {
  const call = inside === null ? undefined : graph.calls[inside];
  return (call && graph.modules[call.module]?.name) || null;
}

/** Of a large drawing, or one that is far away, only a part is in the page: all of it is put there for a moment. */
async function wholePicture({layout}: Scene, title: string): Promise<Picture> {
  const [seen, written] = [sight.peek(), detail.peek()];
  try {
    [sight.value, detail.value] = [null, 'all'];
    await nextRepaint();
    await nextRepaint();
    return pictureOf(document.querySelector('.canvas') as SVGSVGElement, layout, title);
  } finally {
    [sight.value, detail.value] = [seen, written];
  }
}

function nextRepaint(): Promise<void> {
  return new Promise((resolve) => requestAnimationFrame(() => resolve()));
}
