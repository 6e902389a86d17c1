/**
 * Every strip side by side, for looking at while developing: `npm run dev`, then `/gallery/`. Not part of the bundle.
 *
 * The query chooses the theme, the width of a strip and any chart option: `?theme=dark&width=240&mode=bands&scale=symlog`;
 * `frames=1000&copies=3` makes it a test of speed, `only=nan` shows some of them, `frame=50` chooses a step.
 */

import '../src/styles/theme.css';
import '../src/charts/charts.css';
import '../src/view/panels/panels.css';

import {computed, signal} from '@preact/signals';
import {render, type JSX} from 'preact';

import {Elements, Facts} from '../src/charts/Facts';
import {Strip} from '../src/charts/Strip';
import {CHART_DEFAULTS, type ChartOptions} from '../src/charts/options';
import type {Setting} from '../src/charts/setting';
import {timeAxis, type FrameTimes} from '../src/charts/timeAxis';
import {Tip, type TipContent} from '../src/charts/Tip';
import {frameAtStep} from '../src/steps';
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

/** As many frames as the exhibits have, logged every 50 steps, ten frames an epoch. */
function frameTimes(): FrameTimes {
  const numbers = Array.from({length: FRAMES}, (_, i) => i);
  return {
    steps: numbers.map((i) => i * 50),
    times: numbers.map((i) => 1.7e9 + i * 31 + (i > 80 ? 5000 : 0)),
    clock: numbers.map((i) => Math.floor(i / 10)),
  };
}

const frames = signal(frameTimes());
const options = signal<ChartOptions>({...CHART_DEFAULTS, ...optionsOf(query)});
const step = signal<number | null>(query.has('frame') ? Number(query.get('frame')) * 50 : null);
const tip = signal<TipContent | null>(null);

const setting: Setting = {
  options,
  frames,
  clockName: signal(null),
  axis: computed(() => timeAxis(options.value.time, frames.value)),
  frame: computed(() => frameAtStep(frames.value.steps, step.value ?? Infinity)),
  pointed: signal(null),
  tip,
  choose: (chosen) => (step.value = chosen),
  onWidth: () => undefined,
  onScale: () => undefined,
};

function Piece({name, history}: Exhibit): JSX.Element {
  const fetched = signal(history);
  return (
    <figure class="chart" style={{width: `${query.get('width') ?? 300}px`}}>
      <figcaption>
        {name}
        <Elements history={fetched} setting={setting} />
      </figcaption>
      <Strip name={name} history={fetched} setting={setting} />
      <Facts history={fetched} setting={setting} />
    </figure>
  );
}

document.documentElement.dataset.theme = query.get('theme') ?? 'light';
document.body.style.cssText = 'margin: 0; background: var(--surface); color: var(--ink); font: var(--text-m) / 1.4 var(--font)';

const shown = exhibits(FRAMES).filter(({name}) => !query.has('only') || name.includes(query.get('only')!));
render(
  <main style="display: flex; flex-wrap: wrap; gap: 18px; padding: 12px">
    {Array.from({length: COPIES}, () => shown.map((exhibit) => <Piece {...exhibit} />))}
    <Tip tip={tip} />
  </main>,
  document.body,
);
