/** What changed at the step on show, and what moves with a series or the loss: lists that lead to the strips. */

import {useSignal} from '@preact/signals';
import type {ComponentChildren, JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import {answers} from '../../api/client';
import {messageOf} from '../../api/errors';
import {latest} from '../../api/latest';
import type {SeriesName} from '../../api/types';
import type {Change, Changes, Related, RelatedTo, Relation} from '../../api/xray';
import type {Model} from '../../model/model';
import {goToPlace} from '../goToPlace';
import {keysOf} from '../pane/marks';
import {curveName} from '../state/axis';
import * as shown from '../state/shown';

const MEASURES: Record<string, string> = {
  size: 'root mean square',
  std: 'std',
  largest: 'largest magnitude',
  mean: 'mean, in root mean squares',
  zeros: 'zeros',
  nonfinite: 'NaN or infinite',
  distribution: 'distance of the histogram',
};
const KINDS: Record<string, string> = {value: '', grad_norm: 'gradient norms', grad: 'gradient', optimizer_grad: 'gradient at the update', update: 'update', update_ratio: 'update ratio'};

export function ChangesList({model}: {model: Model}): JSX.Element {
  const target = useSignal<RelatedTo | null>(null);
  const scalar = curveName.value;
  return (
    <div class="xray-changes">
      {target.value === null ? (
        <Changed model={model} onRelate={(series) => (target.value = series)}>
          {scalar !== null && (
            <button type="button" class="button" onClick={() => (target.value = {scalar})}>
              What moved with {scalar}, or before it?
            </button>
          )}
        </Changed>
      ) : (
        <Moved model={model} target={target.value} onBack={() => (target.value = null)} />
      )}
    </div>
  );
}

function Changed({model, onRelate, children}: {model: Model; onRelate: (series: SeriesName) => void; children: ComponentChildren}): JSX.Element {
  const step = shown.step.value;
  const {answer, problem} = useAnswer<Changes>((abort) => (step === null ? null : answers.changes(model.name, step, abort)), [model, step]);
  return (
    <>
      <div class="xray-changes-head">
        {children}
        {answer !== null && (
          <p>
            {`Step ${answer.step.toLocaleString('en')} against the recorded steps up to ${answer.since.toLocaleString('en')}. `}
            {answer.usual === null ? 'There are too few earlier steps to tell what is usual.' : `At usual steps, the highest score of all ${answer.count.toLocaleString('en')} series is about ${scoreText(answer.usual)}: what is paler is no more than that.`}
          </p>
        )}
        {problem !== null && <p role="status">{problem}</p>}
        {answer === null && problem === null && <p class="dim">Comparing …</p>}
      </div>
      <ol aria-label="What changed at this step">
        {answer?.ranked.map((one) => (
          <Item key={JSON.stringify(one.series)} series={one.series} step={answer.step} isPale={answer.usual !== null && one.score <= answer.usual} value={scoreText(one.score)} facts={changeText(one)}>
            <button type="button" class="xray-text-button" aria-label={`What moves with ${seriesText(one.series)}?`} title="What moves with it, or before it?" onClick={() => onRelate(one.series)}>
              ↔
            </button>
          </Item>
        ))}
      </ol>
    </>
  );
}

function Moved({model, target, onBack}: {model: Model; target: RelatedTo; onBack: () => void}): JSX.Element {
  const {answer, problem} = useAnswer<Related>((abort) => answers.related(model.name, target, abort), [model, JSON.stringify(target)]);
  const name = 'scalar' in target ? target.scalar : seriesText(target);
  return (
    <>
      <div class="xray-changes-head">
        <button type="button" class="button" onClick={onBack}>
          Back to what changed
        </button>
        <h4>{`What moves with ${name}, or before it`}</h4>
        {answer !== null && (
          <p>
            {`Rank correlation of changes over ${answer.steps.toLocaleString('en')} steps. Among ${answer.count.toLocaleString('en')} series, chance alone gives up to ${answer.chance.toFixed(2)} in 19 of 20 cases; ${answer.beyond_chance.toLocaleString('en')} are beyond, the others paler.`}
          </p>
        )}
        {problem !== null && <p role="status">{problem}</p>}
        {answer === null && problem === null && <p class="dim">Comparing …</p>}
      </div>
      <ol aria-label={`What moves with ${name}`}>
        {answer?.ranked.map((one) => (
          <Item key={JSON.stringify(one.series)} series={one.series} step={shown.step.value ?? 0} isPale={!one.is_beyond_chance} value={signed(one.correlation)} facts={aheadText(one)} />
        ))}
      </ol>
    </>
  );
}

interface ItemProps {
  series: SeriesName;
  step: number;
  isPale: boolean;
  value: string;
  facts: string;
  children?: ComponentChildren;
}

function Item({series, step, isPale, value, facts, children}: ItemProps): JSX.Element {
  return (
    <li class={isPale ? 'is-pale' : undefined}>
      <button type="button" class="xray-change" onClick={() => goToPlace(step, keysOf(series))} title="Show its strips">
        <b>{value}</b>
        <span>
          <bdi>{seriesText(series)}</bdi>
          <small>{facts}</small>
        </span>
      </button>
      {children}
    </li>
  );
}

function seriesText({module, call, path, kind}: SeriesName): string {
  const name = module || (shown.data.value?.session?.class_name ?? 'model');
  const which = call === null || call === 0 ? '' : ` (call ${call + 1})`;
  return [`${name}${which}`, path, KINDS[kind] ?? kind].filter(Boolean).join(', ');
}

function changeText({measure, before, now}: Change): string {
  return `${MEASURES[measure] ?? measure}: ${before} → ${now}`;
}

function aheadText({ahead}: Relation): string {
  return ahead === 0 ? 'at the same step' : `${ahead.toLocaleString('en')} ${ahead === 1 ? 'step' : 'steps'} before`;
}

function scoreText(score: number): string {
  return score >= 1000 ? '> 1000' : score.toPrecision(2).replace(/e\+?(\d+)/, (_, power: string) => '0'.repeat(Number(power)));
}

function signed(value: number): string {
  return value.toFixed(2).replace('-', '−');
}

/** The answer to the latest request; null while there is none. */
function useAnswer<T>(ask: (abort: AbortSignal) => Promise<T> | null, inputs: readonly unknown[]): {answer: T | null; problem: string | null} {
  const state = useSignal<{answer: T | null; problem: string | null}>({answer: null, problem: null});
  useEffect(() => {
    const asking = latest();
    state.value = {answer: null, problem: null};
    const request = (abort: AbortSignal): Promise<T> => ask(abort) ?? new Promise<T>(() => undefined);
    asking.start(request, (answer) => (state.value = {answer, problem: null}), (cause) => (state.value = {answer: null, problem: messageOf(cause)}));
    return () => asking.abort();
  }, inputs);
  return state.value;
}
