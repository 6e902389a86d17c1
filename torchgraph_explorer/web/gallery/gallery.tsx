/**
 * Every strip side by side, for looking at while developing: `npm run dev`, then `/gallery/`. Not part of the bundle.
 *
 * The query chooses the theme, the width of a strip and any chart option: `?theme=dark&width=240&mode=bands&scale=symlog`;
 * `frames=1000&copies=3` makes it a test of speed, `only=nan` shows some of them, `frame=50` chooses a step.
 */

import '../src/styles/theme.css';
import '../src/charts/charts.css';
import '../src/view/panels/panels.css';

import {signal} from '@preact/signals';
import {render, type JSX} from 'preact';

import {Elements, Facts} from '../src/charts/Facts';
import {Strip} from '../src/charts/Strip';
import {Tip} from '../src/charts/Tip';
import {data, frame, setChart, type ChartOptions, type ModelData} from '../src/view/state/choices';
import {exhibits, type Exhibit} from './exhibits';

const query = new URLSearchParams(location.search);

const FRAMES = Number(query.get('frames') ?? 120);
const COPIES = Number(query.get('copies') ?? 1);
const OWN = ['theme', 'width', 'frame', 'frames', 'copies', 'only'];
const NUMBERS = ['bins', 'reject'];

function optionsOf(parameters: URLSearchParams): Partial<ChartOptions> {
  const pairs = [...parameters].filter(([name]) => !OWN.includes(name));
  return Object.fromEntries(pairs.map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : value]));
}

/** A model with as many frames as the exhibits, logged every 50 steps, ten frames an epoch. */
function model(): ModelData {
  const numbers = Array.from({length: FRAMES}, (_, i) => i);
  return {
    epoch: 0,
    session: null,
    steps: numbers.map((i) => i * 50),
    times: numbers.map((i) => 1.7e9 + i * 31 + (i > 80 ? 5000 : 0)),
    clock: numbers.map((i) => Math.floor(i / 10)),
    graphIds: numbers.map(() => null),
    series: [],
    graphs: [],
    finished: null,
    warnings: [],
  };
}

function Piece({name, history}: Exhibit): JSX.Element {
  const held = signal(history);
  return (
    <figure class="chart" style={{width: `${query.get('width') ?? 300}px`}}>
      <figcaption>
        {name}
        <Elements history={held} />
      </figcaption>
      <Strip name={name} history={held} />
      <Facts history={held} />
    </figure>
  );
}

document.documentElement.dataset.theme = query.get('theme') ?? 'light';
document.body.style.cssText = 'margin: 0; background: var(--surface); color: var(--ink); font: var(--text-m) / 1.4 var(--font)';
data.value = model();
frame.value = query.has('frame') ? Number(query.get('frame')) : null;
setChart(optionsOf(query));

const shown = exhibits(FRAMES).filter(({name}) => !query.has('only') || name.includes(query.get('only')!));
render(
  <main style="display: flex; flex-wrap: wrap; gap: 18px; padding: 12px">
    {Array.from({length: COPIES}, () => shown.map((exhibit) => <Piece {...exhibit} />))}
    <Tip />
  </main>,
  document.body,
);
