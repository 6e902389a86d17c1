/** The statistics of each run at the step on show, and their difference to the run on show. */

import type {JSX} from 'preact';
import {percent} from '../../charts/format';
import {distance} from '../../comparison/distance';
import {histogramOf, isLost, lostText, rowOfEntry} from '../../history';
import {formatNumber, wholeNumber} from '../../numberText';
import {nonfinite} from '../../statistics';
import type {Row} from '../../statistics';
import type {RunSeries} from './group';
import {RunChip} from './RunChip';
import {BesideStep} from './BesideStep';

const COLUMNS: readonly {name: string; of: (row: Row) => number; text: (value: number) => string}[] = [
  {name: 'mean', of: (row) => row.mean, text: formatNumber},
  {name: 'std', of: (row) => row.std, text: formatNumber},
  {name: 'min', of: (row) => row.min, text: formatNumber},
  {name: 'max', of: (row) => row.max, text: formatNumber},
  {name: 'l2', of: (row) => row.l2_norm, text: formatNumber},
  {name: 'zeros', of: (row) => row.zeros / row.sampled, text: (share) => percent(share, 1)},
];

/** What the first column means: first, since a narrow panel has no room for all. */
const DISTANCE =
  'How far the histogram is from that of the run on show, from 0 (equal) to 1: how far elements have to be moved on average, divided by the sum of both mean magnitudes';

export function StatisticsTable({parts, entries}: {parts: readonly RunSeries[]; entries: readonly number[]}): JSX.Element {
  const rows = parts.map(({chosen}, i) => (chosen.value === null || entries[i]! < 0 ? null : rowOfEntry(chosen.value, entries[i]!)));
  return (
    <div class="runs-table-box" role="group" aria-label="Statistics of the runs" tabIndex={0}>
      <table class="runs-table">
        <thead>
          <tr>
            <th scope="col">run</th>
            <th scope="col" title={DISTANCE}>
              distance
            </th>
            {COLUMNS.map(({name}) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {parts.map((part, i) => (
            <RunRow key={part.run.number} part={part} entry={entries[i]!} row={rows[i]!} base={i === 0 ? null : rows[0]!} away={i === 0 ? null : distanceOf(parts, entries, i)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function distanceOf(parts: readonly RunSeries[], entries: readonly number[], at: number): number {
  const [ours, theirs] = [parts[0]!.chosen.value, parts[at]!.chosen.value];
  if (ours === null || theirs === null || entries[0]! < 0 || entries[at]! < 0) return NaN;
  return distance(histogramOf(ours, entries[0]!), histogramOf(theirs, entries[at]!));
}

interface RunRowProps {
  part: RunSeries;
  entry: number;
  row: Row | null;
  /** Of the run on show; null in its own row. */
  base: Row | null;
  /** Null in the row of the run on show. */
  away: number | null;
}

function RunRow({part: {run, chosen, series}, entry, row, base, away}: RunRowProps): JSX.Element {
  const head = (
    <th scope="row" title={run.run}>
      <RunChip number={run.number} />
      <BesideStep run={run} />
    </th>
  );
  if (row === null) {
    const text = chosen.value === null ? (series === null ? 'no such series' : 'loading …') : 'nothing recorded at this step';
    return <tr>{head}<td colSpan={COLUMNS.length + 1} class="is-none">{text}</td></tr>;
  }
  if (isLost(chosen.value!, entry)) return <tr>{head}<td colSpan={COLUMNS.length + 1} class="is-bad">{lostText(row)}</td></tr>;
  return (
    <tr>
      {head}
      <td>{away === null ? '' : formatNumber(away)}</td>
      {COLUMNS.map(({name, of, text}) => (
        <td key={name}>
          {text(of(row))}
          {base !== null && <Difference by={of(row) - of(base)} isShare={name === 'zeros'} />}
        </td>
      ))}
      {nonfinite(row) > 0 && <td class="is-bad">{wholeNumber(nonfinite(row))} NaN or ∞</td>}
    </tr>
  );
}

function Difference({by, isShare}: {by: number; isShare: boolean}): JSX.Element | null {
  if (Number.isNaN(by)) return null;
  if (by === 0) return <small>=</small>;
  const size = isShare ? percent(Math.abs(by), 1) : formatNumber(Math.abs(by));
  return <small>{`${by > 0 ? '+' : '−'}${size}`}</small>;
}
