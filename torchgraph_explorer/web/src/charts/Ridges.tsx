/** Histograms of several steps of one series: behind each other, as a ridge, or on top of each other. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useRef} from 'preact/hooks';
import {stepName} from '../numberText';
import type {SeriesHistory} from '../api/types';
import {lacksHistograms} from '../history';
import {stepToChoose} from '../steps';
import {useDerived} from './derived';
import {axisNumber} from './format';
import {rowGrid} from './grid';
import {ridgesOf, ridgeAt, ridgePath} from './ridgeShapes';
import type {RidgeLayout, Ridge} from './ridgeShapes';
import {valueTicks} from './scale';
import type {ValueScale} from './scale';
import {barScale} from './sharedScale';
import type {Setting} from './setting';
import {stepByKey} from './stepping';
import {stepSummary, summaryOf} from './summary';
import {useView} from './view';

const BOTTOM = 17;

export interface RidgesProps {
  name: string;
  history: ReadonlySignal<SeriesHistory | null>;
  setting: Setting;
  /** Of all charts that share this one's value axis and heights. */
  others?: readonly ReadonlySignal<SeriesHistory | null>[];
}

/** As wide as its container. A slider over the steps for the keyboard and for screen readers. */
export function Ridges({name, history, setting, others = [history]}: RidgesProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const {width, isVisible} = useView(box);
  const scale = useDerived(() => barScale(others.flatMap((one) => one.value ?? []), setting.options.value), [setting, ...others]);
  const peak = useDerived(() => Math.max(0, ...others.map((one) => (one.value === null ? 0 : drawn(one.value, scale.value, setting).peak))) || 1, [scale, ...others]);
  const now = history.value;
  const isOverlay = setting.options.value.mode === 'overlay';
  const layout: RidgeLayout = {width: width.value, height: 118, isOverlay};
  const {steps} = setting.frames.value;
  const frame = setting.frame.value;
  const isDrawn = isVisible.value && now !== null && width.value > 60;
  const ridges = isDrawn ? drawn(now, scale.value, setting).ridges : [];
  const pointed = (event: PointerEvent): number | null => {
    const found = ridgeAt(ridges, event.clientY - box.current!.getBoundingClientRect().top, layout);
    return found === null ? null : found.frame;
  };
  return (
    <div
      ref={box}
      class="strip ridges"
      style={{height: `${layout.height + BOTTOM}px`}}
      tabIndex={0}
      role="slider"
      aria-label={now === null ? `${name}: loading` : summaryOf(name, now, steps)}
      aria-valuemin={steps[0] ?? 0}
      aria-valuemax={steps[steps.length - 1] ?? 0}
      aria-valuenow={frame === null ? 0 : (steps[frame] ?? 0)}
      aria-valuetext={now === null || frame === null ? 'no step' : stepSummary(now, frame, steps)}
      onKeyDown={(event) => stepByKey(event, setting)}
      onPointerDown={(event) => {
        const at = event.button === 0 ? pointed(event) : null;
        if (at !== null) setting.choose(stepToChoose(steps, at));
      }}
      onPointerMove={(event) => {
        const at = pointed(event);
        setting.pointed.value = at === null ? null : (steps[at] ?? null);
        setting.tip.value =
          now === null || at === null ? null : {x: event.clientX, y: event.clientY, title: stepName(steps[at] ?? 0), facts: [['', stepSummary(now, at, steps)]]};
      }}
      onPointerLeave={() => {
        setting.pointed.value = null;
        setting.tip.value = null;
      }}
    >
      {isDrawn ? <Drawing ridges={ridges} layout={layout} scale={scale.value} peak={peak.value} setting={setting} /> : now === null && <span class="strip-loading">loading …</span>}
      {now !== null && lacksHistograms(now) && <span class="strip-loading">no histograms were recorded</span>}
    </div>
  );
}

function drawn(history: SeriesHistory, scale: ValueScale, setting: Setting): ReturnType<typeof ridgesOf> {
  const {bins} = setting.options.value;
  return ridgesOf(history, rowGrid(scale, bins));
}

interface DrawingProps {
  ridges: readonly Ridge[];
  layout: RidgeLayout;
  scale: ValueScale;
  peak: number;
  setting: Setting;
}

function Drawing({ridges, layout, scale, peak, setting}: DrawingProps): JSX.Element {
  const {counts} = setting.options.value;
  const frame = setting.frame.value;
  const pointed = setting.pointed.value;
  const {steps} = setting.frames.value;
  const isPointed = (ridge: Ridge): boolean => pointed !== null && steps[ridge.frame]! <= pointed && pointed <= steps[ridge.last]!;
  const isChosen = (ridge: Ridge): boolean => frame !== null && ridge.frame <= frame && frame <= ridge.last;
  const last = Math.max(1, ridges.length - 1);
  return (
    <svg width={layout.width} height={layout.height + BOTTOM} aria-hidden="true">
      {ridges.map((ridge, i) => (
        <path
          key={ridge.frame}
          class={`ridge${layout.isOverlay ? ' is-flat' : ''}${isChosen(ridge) ? ' is-chosen' : ''}${isPointed(ridge) ? ' is-pointed' : ''}`}
          style={{'--age': `${Math.round((100 * i) / last)}%`}}
          d={ridgePath(ridge, {at: i / last, peak, counts, layout})}
        />
      ))}
      <g class="outline-ticks">
        {valueTicks(scale, Math.floor(layout.width / 90)).map((value) => {
          const x = scale.position(value) * layout.width;
          return (
            <g key={value}>
              <line x1={x} x2={x} y1={layout.height} y2={layout.height + 3} />
              <text x={Math.max(8, Math.min(layout.width - 10, x))} y={layout.height + 13}>
                {axisNumber(value, scale.kind === 'linear' ? scale.high - scale.low : Math.abs(value))}
              </text>
            </g>
          );
        })}
      </g>
      {ridges.length > 0 && !layout.isOverlay && (
        <g class="ridge-steps">
          <text x={layout.width - 2} y={10}>{stepName(steps[ridges[0]!.frame] ?? 0)}</text>
          <text x={layout.width - 2} y={layout.height - 3}>{stepName(steps[ridges.at(-1)!.last] ?? 0)}</text>
        </g>
      )}
    </svg>
  );
}
