/** The x-ray: the whole training in one picture, modules in order of execution by steps. */

import './xray.css';

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {useDerived} from '../../charts/derived';
import type {Model} from '../../model/model';
import {IconButton} from '../controls/Icon';
import {Segments, Select} from '../controls/Select';
import type {Option} from '../controls/Select';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {textWidth} from '../pane/textWidth';
import {axisTicks} from './axisTicks';
import {ChangesList} from './ChangesList';
import {Gutter} from './Gutter';
import {Legend} from './Legend';
import {Loss} from './Loss';
import {Marks} from './Marks';
import {ModuleTable} from './ModuleTable';
import {Picture, zoomBy} from './Picture';
import {domain, follow, folded, forget, hasCells, inSight, problem, tree, whole, xray} from './store';
import {foldable} from '../../xray/tree';

const PAGES: Option[] = [
  {value: 'picture', label: 'Picture'},
  {value: 'table', label: 'Table'},
  {value: 'changes', label: 'Changes'},
];

const AXIS_PX = 16;
const LEAST_PX = 80;
const LABEL = {weight: 400, px: 10};

export function XrayPanel({model}: {model: Model}): JSX.Element {
  const id = JSON.stringify([model.name.run, model.name.model]);
  useEffect(() => forget, [id]);
  useEffect(() => follow(model), [model]);
  return (
    <section class="panel xray" aria-label="X-ray">
      <Bar />
      {choices.xrayFace.value === 'table' ? (
        <ModuleTable model={model} />
      ) : choices.xrayFace.value === 'changes' ? (
        <ChangesList model={model} />
      ) : (
        <>
          <Body />
          <Legend />
        </>
      )}
    </section>
  );
}

function Bar(): JSX.Element {
  const now = whole.value;
  const face = choices.xrayFace.value;
  const options = (now?.statistics ?? []).filter(({name}) => now?.available.includes(name)).map(({name, label}) => ({value: name, label}));
  return (
    <header class="panel-header xray-bar">
      <h3>X-ray</h3>
      {options.length > 0 && face !== 'changes' && <Select label="Statistic of the x-ray" value={now?.statistic ?? ''} options={options} onChoose={(name) => (choices.xrayStatistic.value = name)} isBare />}
      {now !== null && !now.is_complete && (
        <span class="dim" role="status">
          reading …
        </span>
      )}
      <Segments label="X-ray as" value={face} options={PAGES} onChoose={(chosen) => (choices.xrayFace.value = chosen as choices.XrayFace)} />
      <span class="spacer" />
      {face === 'picture' && <PictureButtons />}
    </header>
  );
}

function PictureButtons(): JSX.Element {
  const isFolded = folded.value.size > 0;
  const inner = foldable(tree.value).filter(({depth}) => depth === 1);
  const fold = (): void => void (folded.value = isFolded ? new Set() : new Set(inner.map(({name}) => name)));
  return (
    <span class="xray-tools">
      {inner.length > 0 && (
        <button type="button" class="xray-text-button" aria-pressed={isFolded} onClick={fold}>
          {isFolded ? 'Unfold' : 'Fold'}
        </button>
      )}
      <IconButton icon="minus" label="Show more steps (−)" onPress={() => zoomBy(0.5)} disabled={domain.value === null} />
      <IconButton icon="plus" label="Show fewer steps (+)" onPress={() => zoomBy(2)} disabled={whole.value === null} />
      <IconButton icon="fit" label="Show all steps (0)" onPress={() => (domain.value = null)} disabled={domain.value === null} />
    </span>
  );
}

function Body(): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const room = useSignal({width: 0, height: 0});
  useEffect(() => {
    const resize = new ResizeObserver(([entry]) => {
      const {width, height} = entry!.contentRect;
      room.value = {width: Math.floor(width), height: Math.floor(height)};
    });
    resize.observe(box.current!);
    return () => resize.disconnect();
  }, []);
  const gutter = useDerived(() => Math.round(Math.min(150, Math.max(56, 0.24 * room.value.width))), [room]);
  const size = useDerived(
    () => ({width: Math.max(0, room.value.width - gutter.value - 8), height: Math.max(LEAST_PX, room.value.height - AXIS_PX)}),
    [room, gutter],
  );
  const {width, height} = size.value;
  return (
    <div class="xray-body">
      <Loss width={width} gutter={gutter.value} />
      <div class="xray-room" ref={box}>
        {whole.value === null ? (
          <p class="dim pad" role="status">
            {problem.value ?? 'Reading the run …'}
          </p>
        ) : !hasCells.value ? (
          <p class="dim pad">Nothing {shown.isOver.value ? 'was recorded' : 'is recorded yet'}.</p>
        ) : (
          width > 0 && (
            <>
              <Gutter width={gutter.value} height={height} />
              <div class="xray-plot" style={{width: `${width}px`}}>
                <Picture size={size} />
                <Marks width={width} height={height} />
                <Axis width={width} />
              </div>
            </>
          )
        )}
      </div>
    </div>
  );
}

function Axis({width}: {width: number}): JSX.Element {
  const {from, to} = inSight.value;
  const shown = xray.value;
  const at = axisTicks({from, to, last: shown?.last.at(-1) ?? 0, width}, (text) => textWidth(text, LABEL));
  return (
    <div class="xray-axis" aria-hidden="true">
      {at.map(({step, text}) => (
        <span key={step} style={{left: `${((step - from) / (to - from)) * width}px`}}>
          {text}
        </span>
      ))}
    </div>
  );
}
