/** Bands or lines of one series in all runs, in one plot. */

import type {JSX, RefObject} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import type {SeriesHistory} from '../../api/types';
import {useDerived, useReaction} from '../../charts/derived';
import {drawMean} from '../../charts/draw/mean';
import type {Context} from '../../charts/draw/context';
import {drawRuns} from '../../charts/draw/runs';
import {stripLayout} from '../../charts/layout';
import {usePainting} from '../../charts/painting';
import {followPalette} from '../../charts/palette';
import type {Palette} from '../../charts/palette';
import type {Scene} from '../../charts/scene';
import type {Setting} from '../../charts/setting';
import {stepByKey} from '../../charts/stepping';
import {Marker} from '../../charts/Strip';
import type {TipContent} from '../../charts/Tip';
import type {Fact} from '../../charts/tipFacts';
import {useView} from '../../charts/view';
import {frameBeside} from '../../comparison/alignment';
import {runColour, runDashes, runLetter} from '../../comparison/choice';
import {meanOfRuns} from '../../comparison/mean';
import {boundsOf, entryOf, hasHistogram, histogramOf, rowOfEntry} from '../../history';
import {quantiles} from '../../histogram/histogram';
import {formatNumber, stepName} from '../../numberText';
import {measureNamed} from '../../statistics';
import type {Row} from '../../statistics';
import {frameAtStep, stepToChoose} from '../../steps';
import {useGroup} from './group';
import type {RunSeries} from './group';

const ROOM = {height: 112, hasBars: false};

export function RunsPlot({parts, name}: {parts: readonly RunSeries[]; name: string}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const {width, isVisible} = useView(box);
  const group = useGroup(parts, ROOM);
  const palette = followPalette();
  const {setting} = parts[0]!.run;
  const layout = useDerived(() => stripLayout(width.value, setting.options.value.bins, ROOM), [setting]);
  const pointed = useDerived(() => (setting.pointed.value === null ? null : frameAtStep(setting.frames.value.steps, setting.pointed.value)), [setting]);
  const scenes = (): readonly (Scene | null)[] => group.scenesAt(width.value);
  useReaction(() => setting.onWidth(layout.value.plot.width), [layout]);
  useEffect(() => () => setting.onScale(canvas, null), [setting]);
  usePainting({
    canvas,
    isVisible,
    watch: () => void [group.watch(), palette.value, width.value],
    prepare: () => group.prepare(width.value),
    given: [group, layout],
    area: () => (scenes().every((one) => one === null) ? null : {x: 0, y: 0, width: layout.value.width, height: layout.value.height}),
    paint: (context) => {
      setting.onScale(canvas, scenes().find((one) => one !== null)!.scale.kind);
      draw(context, {parts, scenes: scenes(), setting, palette: palette.value});
    },
  });
  return (
    <div
      ref={box}
      class="strip runs-plot"
      style={{height: `${layout.value.height}px`}}
      tabIndex={0}
      role="slider"
      aria-label={`${name}, in ${parts.filter(({series}) => series).length} runs`}
      {...sliderValues(parts)}
      onKeyDown={(event) => stepByKey(event, setting)}
      {...usePlotPointer(box, parts, scenes)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <Marker class="strip-chosen" frame={setting.frame} axis={setting.axis} layout={layout} />
      <Marker class="strip-crosshair" frame={pointed} axis={setting.axis} layout={layout} />
      {parts.every(({history}) => history.value === null) && <span class="strip-loading">loading …</span>}
    </div>
  );
}

interface Drawn {
  parts: readonly RunSeries[];
  scenes: readonly (Scene | null)[];
  setting: Setting;
  palette: Palette;
}

function draw(context: Context, {parts, scenes, setting, palette}: Drawn): void {
  const style = getComputedStyle(context.canvas);
  const curves = scenes.flatMap((scene, i) => {
    const {number} = parts[i]!.run;
    const colour = style.getPropertyValue(runColour(number).slice('var('.length, -1)).trim();
    return scene === null ? [] : [{scene, colour, dashes: runDashes(number)}];
  });
  if (setting.options.peek().runs !== 'mean') return drawRuns(context, curves, palette);
  const all = curves.map(({scene}) => scene);
  drawMean(context, all[0]!, {points: meanOfRuns(all), palette});
}

function sliderValues(parts: readonly RunSeries[]): JSX.HTMLAttributes<HTMLDivElement> {
  const {setting} = parts[0]!.run;
  const {steps} = setting.frames.value;
  const frame = setting.frame.value;
  if (frame === null) return {'aria-valuenow': 0};
  return {
    'aria-valuemin': steps[0] ?? 0,
    'aria-valuemax': steps[steps.length - 1] ?? 0,
    'aria-valuenow': steps[frame] ?? 0,
    'aria-valuetext': `${stepName(steps[frame] ?? 0)}: ${factsAt(parts, frame).map((fact) => fact.join(' ')).join(', ')}`,
  };
}

type Handlers = Pick<JSX.HTMLAttributes<HTMLDivElement>, 'onPointerMove' | 'onPointerDown' | 'onPointerLeave'>;

function usePlotPointer(box: RefObject<HTMLElement>, parts: readonly RunSeries[], scenes: () => readonly (Scene | null)[]): Handlers {
  const {setting} = parts[0]!.run;
  const frameAt = (event: PointerEvent): number | null => {
    const scene = scenes()[0] ?? null;
    const x = event.clientX - box.current!.getBoundingClientRect().left;
    if (scene === null || x < scene.layout.plot.x || x > scene.layout.plot.x + scene.layout.plot.width) return null;
    return scene.positions.finder.nearest(x - scene.layout.plot.x);
  };
  const choose = (frame: number | null): void => {
    if (frame !== null) setting.choose(stepToChoose(setting.frames.value.steps, frame));
  };
  const leave = (): void => {
    setting.pointed.value = null;
    setting.tip.value = null;
  };
  useEffect(() => leave, []);
  return {
    onPointerMove(event) {
      const frame = frameAt(event);
      if (event.buttons === 1) choose(frame);
      setting.pointed.value = frame === null ? null : (setting.frames.value.steps[frame] ?? null);
      setting.tip.value = frame === null ? null : tipAt(event, parts, frame);
    },
    onPointerDown: (event) => (event.button === 0 ? choose(frameAt(event)) : undefined),
    onPointerLeave: leave,
  };
}

function tipAt({clientX, clientY}: PointerEvent, parts: readonly RunSeries[], frame: number): TipContent {
  const {frames} = parts[0]!.run.setting;
  return {x: clientX, y: clientY, title: stepName(frames.value.steps[frame] ?? 0), facts: factsAt(parts, frame)};
}

/** What each run has at its step beside one of the run on show. */
function factsAt(parts: readonly RunSeries[], frame: number): Fact[] {
  const main = parts[0]!.run.setting;
  return parts.map(({run, history}) => {
    const own = run.number === 0 ? frame : frameBeside(main.axis.value, frame, run.setting.axis.value);
    const step = own === null ? undefined : run.setting.frames.value.steps[own];
    const isOther = step !== undefined && step !== main.frames.value.steps[frame];
    const entry = own === null || history.value === null ? -1 : entryOf(history.value, own);
    const name = `${runLetter(run.number)} ${run.label}${isOther ? ` (${stepName(step)})` : ''}`;
    return [name, entry < 0 ? '–' : textOf(history.value!, entry, run.setting)];
  });
}

/** The statistic that lines show; of bands the median, and between which values nine tenths lie. */
function textOf(history: SeriesHistory, entry: number, {options}: Setting): string {
  const {mode, statistic} = options.value;
  if (mode === 'line') return formatNumber(measureNamed(statistic).of(rowOfEntry(history, entry)));
  if (!hasHistogram(history, entry)) return meanText(rowOfEntry(history, entry));
  const [low, median, high] = quantiles(histogramOf(history, entry), [0.05, 0.5, 0.95], boundsOf(history, entry)).map(formatNumber);
  return `${median} (${low} … ${high})`;
}

/** In place of quantiles. */
function meanText({mean, std}: Row): string {
  return `mean ${formatNumber(mean)} ± ${formatNumber(std)}`;
}
