/** How the panels draw: sets the chart options. */

import './ChartOptions.css';

import {useRef} from 'preact/hooks';

import {scalesOnShow} from './shownScales';
import {MEASURES} from '../../statistics';
import {isComparing} from '../comparison/state';
import {chooseTime, timeOptions} from '../state/axis';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import type {ChartOptions as Options} from '../../charts/options';
import {Icon} from '../controls/Icon';
import {Menu} from '../controls/Menu';
import {ScalarsButton} from '../scalars/ScalarsButton';
import {XrayButton} from '../xray/XrayButton';
import {NumberInput} from '../controls/NumberInput';
import {Segments, Select} from '../controls/Select';
import type {Option} from '../controls/Select';

const MODES: Option[] = [
  {value: 'heat', label: 'Heat'},
  {value: 'bands', label: 'Bands'},
  {value: 'line', label: 'Line'},
  {value: 'ridge', label: 'Ridge'},
  {value: 'overlay', label: 'Overlay'},
];
const OF_RUNS: Option[] = [
  {value: 'over', label: 'Overlaid'},
  {value: 'beside', label: 'Side by side'},
  {value: 'mean', label: 'Mean and spread'},
];
const RANGES: Option[] = [
  {value: 'robust', label: 'Robust'},
  {value: 'full', label: 'Full'},
];
const SCALES: Option[] = [
  {value: 'auto', label: 'Auto'},
  {value: 'linear', label: 'Linear'},
  {value: 'symlog', label: 'Symlog'},
];
const COUNTS: Option[] = [
  {value: 'linear', label: 'Linear'},
  {value: 'log', label: 'Log'},
];
const STATISTICS: Option[] = MEASURES.map(({name, label}) => ({value: name, label}));

export function ChartOptions() {
  const chart = shown.chart.value;
  const set = <Name extends keyof Options>(name: Name) => (value: string) => choices.setChart({[name]: value} as Partial<Options>);
  return (
    <div class="pane-bar chart-options" role="toolbar" aria-label="Chart options">
      <span class="chart-mode">
        <Segments label="Chart" value={chart.mode} options={MODES} onChoose={set('mode')} />
        <Select label="Chart" value={chart.mode} options={MODES} onChoose={set('mode')} isBare />
      </span>
      {chart.mode === 'line' && (
        <Select label="Statistic" value={chart.statistic} options={STATISTICS} onChoose={set('statistic')} isBare />
      )}
      {isComparing.value && (chart.mode === 'bands' || chart.mode === 'line') && (
        <Select label="Runs" value={chart.runs} options={OF_RUNS} onChoose={set('runs')} />
      )}
      <Select label="Range" value={chart.range} options={RANGES} onChoose={set('range')} />
      <Select label="Scale" value={chart.scale} options={scales(chart.scale)} onChoose={set('scale')} />
      {chart.mode !== 'bands' && chart.mode !== 'line' && <Select label="Counts" value={chart.counts} options={COUNTS} onChoose={set('counts')} />}
      <ScalarsButton />
      <XrayButton />
      <MoreOptions />
    </div>
  );
}

/** While the scale is left to the data, the option names the one that they chose. */
function scales(chosen: Options['scale']): Option[] {
  const shown = scalesOnShow.value;
  if (chosen !== 'auto' || shown === null) return SCALES;
  return SCALES.map((option) => (option.value === 'auto' ? {...option, label: `Auto (${shown})`} : option));
}

function MoreOptions() {
  const box = useRef<HTMLDetailsElement>(null);
  const chart = shown.chart.value;
  return (
    <Menu
      box={box}
      class="more"
      button={
        <summary class="icon-button" aria-label="More chart options" title="More chart options">
          <Icon name="options" />
        </summary>
      }
    >
      <div class="more-box">
        <Select label="Time axis" value={chart.time} options={timeOptions.value} onChoose={chooseTime} />
        <NumberField label="Rows of a histogram" value={chart.bins} low={4} high={512} step={4} onChoose={(rows) => choices.setChart({bins: Math.round(rows)})} />
        <NumberField
          label="Left out of the robust range, %"
          value={Math.round(chart.reject * 1000) / 10}
          low={0}
          high={90}
          step={1}
          onChoose={(percent) => choices.setChart({reject: percent / 100})}
        />
      </div>
    </Menu>
  );
}

interface NumberFieldProps {
  label: string;
  value: number;
  low: number;
  high: number;
  step: number;
  onChoose: (value: number) => void;
}

function NumberField({label, value, low, high, step, onChoose}: NumberFieldProps) {
  return (
    <label class="select">
      <span class="select-label">{label}</span>
      <NumberInput value={value} min={low} max={high} step={step} onChoose={(chosen) => chosen >= low && chosen <= high && onChoose(chosen)} />
    </label>
  );
}
