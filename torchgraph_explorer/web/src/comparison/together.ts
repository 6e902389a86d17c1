/** The strips of several runs on one value axis and in one range of colours. */

import {isWhole, rowGrid} from '../charts/grid';
import {linearBelow} from '../charts/scale';
import {barScale, joined} from '../charts/sharedScale';
import {sceneOf, type Scene, type SceneInput} from '../charts/scene';
import {stripMode} from '../charts/options';
import {elementScale} from '../charts/valueAxis';
import {lacksHistograms} from '../history';

/** The strips of several runs, worked out run by run, so that no frame has to wait for all. */
export class ScenesTogether {
  readonly #steps: Iterator<void, readonly Scene[]>;
  #scenes: readonly Scene[] | null = null;

  constructor(given: readonly SceneInput[]) {
    const hasBars = given.some(({history}) => !lacksHistograms(history));
    const inputs = given.map((input) => ({...input, room: {...input.room, hasBars: hasBars && input.room?.hasBars !== false}}));
    const [first] = inputs;
    if (first === undefined) this.#scenes = [];
    this.#steps = first !== undefined && stripMode(first.options.mode) === 'heat' ? heatsTogether(inputs) : linesTogether(inputs);
  }

  /** Does a part of the work; true when nothing is left. */
  step(): boolean {
    if (this.#scenes !== null) return true;
    const {done, value} = this.#steps.next();
    if (done === true) this.#scenes = value;
    return done === true;
  }

  /** A strip for each run, worked out now as far as they are not. */
  get scenes(): readonly Scene[] {
    while (!this.step());
    return this.#scenes!;
  }
}

function* heatsTogether(inputs: readonly SceneInput[]): Generator<void, readonly Scene[], void> {
  for (const {history, options} of inputs) yield void elementScale(history, options);
  const scale = barScale(inputs.map(({history}) => history), inputs[0]!.options);
  const scenes: Scene[] = [];
  for (const input of inputs) yield void scenes.push(sceneOf({...input, scale}));
  const heats = scenes.flatMap(({content}) => (content.mode === 'heat' ? [content.heat] : []));
  const filled = heats.filter(({elements}) => elements > 0);
  const peak = Math.max(0, ...filled.map((heat) => heat.peak)) || 1;
  const elements = Math.max(0, ...filled.map((heat) => heat.elements));
  return scenes.map((scene) => (scene.content.mode === 'heat' ? {...scene, content: {mode: 'heat', heat: {...scene.content.heat, peak, elements}}} : scene));
}

/** What bands and lines are made of does not depend on the axis. */
function* linesTogether(inputs: readonly SceneInput[]): Generator<void, readonly Scene[], void> {
  const scenes: Scene[] = [];
  for (const input of inputs) yield void scenes.push(sceneOf(input));
  const {options} = inputs[0]!;
  const filled = scenes.filter(hasContent);
  const scale = joined(filled, options, (ends) => leastOf(filled, ends));
  const histories = inputs.map(({history}) => history);
  const grid = rowGrid(options.mode === 'bands' ? scale : barScale(histories, options), options.bins, histories.every(isWhole));
  return scenes.map((scene) => ({...scene, scale, grid}));
}

function hasContent({content}: Scene): boolean {
  return content.mode === 'line' ? content.lines.length > 0 : content.mode === 'bands' && content.bands.length > 0;
}

/** Where a symlog axis turns linear for these scenes. */
function leastOf(scenes: readonly Scene[], ends: {low: number; high: number}): number {
  const reach = Math.max(Math.abs(ends.low), Math.abs(ends.high));
  const each = scenes.map(({content, history}) => {
    if (content.mode !== 'line') return linearBelow(history, ends);
    const sizes = content.lines.flat().map(({value}) => Math.abs(value)).filter((size) => size > 0);
    return Math.min(reach / 10, ...sizes);
  });
  return Math.max(Math.min(reach / 10, ...each), reach * 1e-9);
}
