/** One series over time: heat, bands or a line, with the bars of the step on show beside it. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useEffect, useRef} from 'preact/hooks';

import type {Band, SeriesHistory} from '../api/types';
import {lacksHistograms} from '../history';
import {frameAtStep} from '../steps';
import {useDerived, useReaction} from './derived';
import {drawPlot} from './draw/plot';
import {drawSlice} from './draw/slice';
import {RIM, stripLayout, type Box, type StripLayout, type StripRoom} from './layout';
import {usePainting} from './painting';
import {followPalette} from './palette';
import {usePointer} from './pointer';
import {sceneOf, type Scene} from './scene';
import type {Setting} from './setting';
import {stepByKey} from './stepping';
import {stepSummary, summaryOf} from './summary';
import {timePixel, type TimeAxis} from './timeAxis';
import {useView, type View} from './view';

/** Pixels; in less there is no room for a plot. */
export const NARROWEST = 120;

export interface StripProps {
  /** What is drawn, for who cannot see it: `layer1.conv1, output, value`. */
  name: string;
  /** Null while it is being fetched. */
  history: ReadonlySignal<SeriesHistory | null>;
  /** Where the frame on show is looked up: where frames are merged in `history`, that frame alone as soon as it is fetched. */
  chosen?: ReadonlySignal<SeriesHistory | null>;
  setting: Setting;
  /** What a rule allows, drawn where the plot has its units. */
  band?: ReadonlySignal<Band | null>;
  together?: Together;
}

/** What strips that are shown together share. */
export interface Together {
  /** The strip's picture at a width; null while its history is being fetched. */
  sceneAt: (width: number) => Scene | null;
  /** Reads the signals that the picture depends on besides its own. Cheap. */
  watch: () => void;
  /** Does some of the work for the pictures at a width; true when they are there. */
  prepare: (width: number) => boolean;
  /** Reads signals, too. */
  room: () => StripRoom;
}

/** The strip, as wide as its container. A slider over the steps for the keyboard and for screen readers. */
export function Strip({name, history, chosen = history, setting, band, together}: StripProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const view = useView(box);
  const scene = useDerived(
    () => (together ? together.sceneAt(view.width.value) : workOut(history.value, view.width.value, setting, band?.value ?? null)),
    [history, setting, band, together],
  );
  // Not that of the scene, which takes long to work out.
  const layout = useDerived(
    () => stripLayout(view.width.value, setting.options.value.bins, together ? together.room() : roomOf(history.value)),
    [history, setting, together],
  );
  const missing = useDerived(() => (setting.frames.value.steps.length === 0 ? 'no step' : 'loading'), [setting]);
  const summary = useDerived(
    () => (history.value === null ? `${name}: ${missing.value}` : summaryOf(name, history.value, setting.frames.value.steps)),
    [name, history, setting], // of an input the name is known when the graph has come
  );
  const pointed = useDerived(() => frameOf(setting.pointed.value, setting), [setting]);
  useReaction(() => setting.onWidth(layout.value.plot.width), [layout]);
  const canvases = usePictures({scene, history, chosen, view, layout, setting, band, together});
  const pointer = usePointer({box, scene, chosen, setting});
  return (
    <div
      ref={box}
      class={history.value === null ? 'strip is-loading' : 'strip'}
      style={{height: `${layout.value.height}px`}}
      tabIndex={0}
      role="slider"
      aria-label={summary.value}
      {...sliderValues(chosen.value, setting)}
      onKeyDown={(event) => stepByKey(event, setting)}
      {...pointer}
    >
      <canvas ref={canvases.plot} aria-hidden="true" />
      <canvas ref={canvases.slice} aria-hidden="true" />
      <Marker class="strip-chosen" frame={setting.frame} axis={setting.axis} layout={layout} />
      <Marker class="strip-crosshair" frame={pointed} axis={setting.axis} layout={layout} />
      {history.value === null && <span class="strip-loading">{missing.value === 'loading' ? 'loading …' : missing}</span>}
    </div>
  );
}

/** A strip alone has bars if there are histograms. */
function roomOf(history: SeriesHistory | null): StripRoom {
  return {hasBars: history === null || !lacksHistograms(history)};
}

function workOut(history: SeriesHistory | null, width: number, {options, axis}: Setting, band: Band | null): Scene | null {
  if (history === null || width < NARROWEST) return null;
  return sceneOf({history, options: options.value, axis: axis.value, width, band});
}

function frameOf(step: number | null, {frames}: Setting): number | null {
  return step === null ? null : frameAtStep(frames.value.steps, step);
}

/** The steps as a slider's values, the one on show also in words. */
function sliderValues(history: SeriesHistory | null, setting: Setting): JSX.HTMLAttributes<HTMLDivElement> {
  const {steps} = setting.frames.value;
  const frame = setting.frame.value;
  if (history === null || frame === null) return {'aria-valuenow': 0};
  return {
    'aria-valuemin': steps[0] ?? 0,
    'aria-valuemax': steps[steps.length - 1] ?? 0,
    'aria-valuenow': steps[frame] ?? 0,
    'aria-valuetext': stepSummary(history, frame, steps),
  };
}

interface Pictured {
  scene: ReadonlySignal<Scene | null>;
  history: ReadonlySignal<SeriesHistory | null>;
  chosen: ReadonlySignal<SeriesHistory | null>;
  view: View;
  layout: ReadonlySignal<StripLayout>;
  setting: Setting;
  band: ReadonlySignal<Band | null> | undefined;
  together: Together | undefined;
}

/** Two canvases, so that choosing another step repaints the bars alone. */
function usePictures({scene, history, chosen, view, layout, setting, band, together}: Pictured): Record<'plot' | 'slice', RefObject<HTMLCanvasElement>> {
  const [plot, slice] = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const palette = followPalette();
  const {isVisible} = view;
  useEffect(() => () => setting.onScale(plot, null), [setting]);
  const prepare = together && (() => together.prepare(view.width.value));
  const watch = () => void [history.value, setting.options.value, setting.axis.value, palette.value, view.width.value, band?.value, together?.watch()];
  usePainting({
    canvas: plot,
    isVisible,
    watch,
    prepare,
    given: [scene, layout],
    area: () => (scene.value === null ? null : whole(layout.value)),
    paint: (context) => {
      setting.onScale(plot, scene.value!.scale.kind);
      drawPlot(context, scene.value!, palette.value);
    },
  });
  usePainting({
    canvas: slice,
    isVisible,
    watch: () => void [watch(), chosen.value, setting.frame.value],
    prepare,
    given: [scene, layout, chosen],
    area: () => (scene.value === null ? null : besides(layout.value)),
    paint: (context) => drawSlice(context, scene.value!, {history: chosen.value!, frame: setting.frame.value, palette: palette.value}),
  });
  return {plot, slice};
}

function whole({width, height}: StripLayout): Box {
  return {x: 0, y: 0, width, height};
}

function besides({slice, height}: StripLayout): Box {
  return {x: slice.x, y: 0, width: slice.width + 1, height};
}

export interface MarkerProps {
  class: string;
  frame: ReadonlySignal<number | null>;
  axis: ReadonlySignal<TimeAxis>;
  layout: ReadonlySignal<Pick<StripLayout, 'plot'>>;
}

/** A vertical line at a frame, moved without repainting anything. */
export function Marker({class: name, frame, axis, layout}: MarkerProps): JSX.Element {
  const line = useRef<HTMLDivElement>(null);
  useReaction(() => {
    const {plot} = layout.value;
    const x = frame.value === null ? NaN : timePixel(axis.value, plot.width, axis.value.values[frame.value] ?? NaN);
    Object.assign(line.current!.style, {
      display: Number.isNaN(x) ? 'none' : '',
      top: `${plot.y - RIM - 1}px`,
      height: `${plot.height + 2 * RIM + 2}px`,
      transform: `translateX(${plot.x + Math.min(Math.floor(x), plot.width - 1)}px)`,
    });
  }, [frame, axis, layout]);
  return <div ref={line} class={name} />;
}
