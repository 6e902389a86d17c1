/** Development only: answers the API from synthetic data. TORCHGRAPH_MOCK=1 npm run dev */
import type {IncomingMessage, ServerResponse} from 'node:http';
import type {Plugin} from 'vite';
import {STATISTICS} from '../src/api/types';
import type {ModuleGraph, SeriesInfo} from '../src/api/types';
import {big, residual} from './model';

const GRAPHS: Record<string, ModuleGraph> = {DigitsResNet: residual(), BigTransformer: big()};
const BEGAN = Date.now();
const OLD = 180;
const EVERY = 10;

function seriesOf(graph: ModuleGraph): SeriesInfo[] {
  const items: SeriesInfo[] = []; const add = (one: Omit<SeriesInfo, 'series'>) => items.push({series: items.length, ...one});
  for (const call of graph.calls) {
    const module = graph.modules[call.module]!;
    for (const [role, list] of [['input', call.inputs], ['output', call.outputs]] as const) for (const {path} of list) for (const kind of ['value', 'grad_norm'] as const) add({module: module.name, call: call.call, role, path, kind});
    if (call.call === 0) for (const {path} of module.params) for (const kind of ['value', 'grad'] as const) add({module: module.name, call: null, role: 'param', path, kind});
  }
  for (const node of graph.nodes) if (node.kind === 'attached') for (const kind of ['value', 'grad_norm'] as const) add({module: '', call: 0, role: 'attached', path: node.tensor!.path, kind});
  return items;
}
const SERIES = Object.fromEntries(Object.entries(GRAPHS).map(([name, graph]) => [name, seriesOf(graph)]));
const frames = (): number => OLD + Math.floor((Date.now() - BEGAN) / 3000);

function rng(seed: number): () => number { let s = (seed * 2654435761) >>> 0 || 1; return () => { s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0; return s / 2 ** 32; }; }

function cell(series: SeriesInfo, frame: number): {stats: number[]; buckets: Map<number, number>} {
  const r = rng(series.series * 7919 + frame * 104729 + 17); r(); r();
  const base = rng(series.series + 11); base();
  const isGrad = series.kind !== 'value';
  const scale = Math.exp((base() - 0.5) * 2) * (isGrad ? 0.02 * Math.exp(-frame / 150) : 1 + frame / 400);
  const shift = isGrad ? 0 : (base() - 0.5) * 0.6 * Math.sin(frame / 40 + series.series);
  const relu = /relu/.test(series.module) && series.role === 'output' && !isGrad;
  const n = 400; const buckets = new Map<number, number>(); const f = new Float32Array(1); const u = new Uint32Array(f.buffer);
  let sum = 0, abs = 0, sq = 0, zeros = 0, low = Infinity, high = -Infinity;
  for (let i = 0; i < n; i++) {
    let x = (Math.sqrt(-2 * Math.log(r() + 1e-9)) * Math.cos(6.283 * r()) + shift) * scale;
    if (series.kind === 'grad_norm') x = Math.abs(x); if (relu) x = Math.max(0, x);
    if (x === 0) zeros++;
    sum += x; abs += Math.abs(x); sq += x * x; low = Math.min(low, x); high = Math.max(high, x);
    f[0] = x; const b = ((u[0]! & 0x7fffffff) >>> 21) * (u[0]! >>> 31 ? -1 : 1); buckets.set(b, (buckets.get(b) ?? 0) + 40);
  }
  const mean = sum / n; const nan = series.module === 'layer2.bn1' && frame % 60 > 55 ? 3 : 0;
  return {stats: [16000, 16000, nan, 0, 0, zeros * 40, low, high, mean, abs / n, Math.sqrt(sq / n - mean * mean), Math.sqrt(sq * 40)], buckets};
}

type Arr = Float32Array | Uint32Array | Int16Array;
function pack(meta: object, arrays: [string, Arr, number[]][]): Buffer {
  let offset = 0; const entries = arrays.map(([name, a, shape]) => { const e = {name, dtype: a.constructor.name.replace('Array', '').toLowerCase(), shape, offset}; offset += Math.ceil(a.byteLength / 8) * 8; return e; });
  const json = Buffer.from(JSON.stringify({meta, arrays: entries})); const base = Math.ceil((4 + json.length) / 8) * 8; const out = Buffer.alloc(base + offset);
  out.writeUInt32LE(json.length, 0); json.copy(out, 4); arrays.forEach(([, a], i) => Buffer.from(a.buffer, a.byteOffset, a.byteLength).copy(out, base + entries[i]!.offset)); return out;
}

function history(model: string, ids: number[], from: number): Buffer {
  const total = frames(); const count = Math.max(0, total - from); const arrays: [string, Arr, number[]][] = [];
  for (const id of ids) {
    const cells = [...Array(count).keys()].map((i) => cell(SERIES[model]![id]!, from + i)); const b: number[] = []; const c: number[] = []; const o = [0];
    for (const one of cells) { for (const [k, v] of [...one.buckets].sort((x, y) => x[0] - y[0])) { b.push(k); c.push(v); } o.push(b.length); }
    arrays.push([`${id}.frame`, Uint32Array.from(cells.map((_, i) => from + i)), [count]], [`${id}.statistics`, Float32Array.from(cells.flatMap((x) => x.stats)), [count, 12]], [`${id}.offsets`, Uint32Array.from(o), [o.length]], [`${id}.buckets`, Int16Array.from(b), [b.length]], [`${id}.counts`, Uint32Array.from(c), [c.length]]);
  }
  return pack({epoch: 0, frames: total, series: ids, statistics: STATISTICS}, arrays);
}

function layout(graph: ModuleGraph, inside: number | null): object {
  const ids = graph.nodes.flatMap((n, i) => (n.inside === inside ? [i] : [])); const rank = new Map(ids.map((i) => [i, 0]));
  const mine = graph.edges.map((e, i) => ({...e, i})).filter((e) => rank.has(e.source) && rank.has(e.target));
  for (let k = 0; k < ids.length; k++) { let moved = false; for (const e of mine) { const r = rank.get(e.source)! + 1; if (r > rank.get(e.target)!) { rank.set(e.target, r); moved = true; } } if (!moved) break; }
  const rows = new Map<number, number[]>(); for (const i of ids) { const r = rank.get(i)!; rows.set(r, [...(rows.get(r) ?? []), i]); }
  const at = new Map<number, {x: number; y: number}>(); const w = 160; const h = 48;
  for (const [r, row] of rows) row.forEach((i, k) => at.set(i, {x: 140 + k * 200 - (row.length - 1) * 30, y: 40 + r * 84}));
  return {width: 440, height: 60 + rows.size * 84, approximate: null,
    nodes: ids.map((i) => ({node: i, ...at.get(i)!, width: graph.nodes[i]!.kind === 'call' ? w : 120, height: graph.nodes[i]!.kind === 'call' ? h : 32})),
    edges: mine.map((e) => { const a = at.get(e.source)!, b = at.get(e.target)!; const skip = rank.get(e.target)! - rank.get(e.source)! > 1 && a.x === b.x; const y0 = a.y + (graph.nodes[e.source]!.kind === 'call' ? 24 : 16), y1 = b.y - (graph.nodes[e.target]!.kind === 'call' ? 24 : 16); const dx = skip ? 150 : 0; return {edge: e.i, points: [[a.x, y0], [a.x + dx, y0 + 30], [b.x + dx, y1 - 30], [b.x, y1]]}; })};
}

function respond(url: URL): object | Buffer {
  const q = url.searchParams; const model = q.get('model') ?? ''; const graph = GRAPHS[model];
  if (url.pathname.endsWith('/runs')) return {logdir: 'runs', runs: [{run: '2026-11-21_08-43-04', models: ['DigitsResNet', 'BigTransformer'], first_write: BEGAN / 1000 - 600, last_write: Date.now() / 1000, bytes: 812345, error: null}, {run: '2026-11-20_18-01-44', models: ['DigitsResNet'], first_write: BEGAN / 1000 - 60000, last_write: BEGAN / 1000 - 59000, bytes: 8345, error: null}]};
  if (!graph) throw new Error(`no model '${model}' in this run`);
  if (url.pathname.endsWith('/graph')) return graph;
  if (url.pathname.endsWith('/layout')) return layout(graph, q.get('inside') === null ? null : Number(q.get('inside')));
  if (url.pathname.endsWith('/history')) return history(model, q.get('series')!.split(',').map(Number), Number(q.get('from')));
  if (url.pathname.endsWith('/frame')) { const f = Number(q.get('frame')); const all = SERIES[model]!; const few = all.length > 500; return pack({epoch: 0, frame: f, step: f * EVERY, statistics: STATISTICS}, [['series', Uint32Array.from(all.map((s) => s.series)), [all.length]], ['statistics', Float32Array.from(all.flatMap((s) => (few && s.series % 7 === 0 ? cell(s, 0) : cell(s, f)).stats)), [all.length, 12]]]); }
  const total = frames(); const first = Number(q.get('frames')); const n = [...Array(Math.max(0, total - first)).keys()].map((i) => first + i); const s0 = Number(q.get('series'));
  return {run: q.get('run'), model, epoch: 0, reset: q.get('epoch') !== '0', session: {model, class_name: model, created: BEGAN / 1000 - 600, host: 'node7', pid: 7, versions: {torch: '2.13.0'}, log: ['io', 'io_grad', 'params', 'params_grad'], log_freq: '10', sample_n: 16384, bins: 64, reject_outlier_proportion: 0.1, clock: 'epoch'},
    frames: {first, step: n.map((i) => i * EVERY), time: n.map((i) => BEGAN / 1000 - 600 + i * 3), clock: n.map((i) => i / 20), graph: n.map(() => 0)}, series: {first: s0, items: SERIES[model]!.slice(s0)}, graphs: [{graph: 0, first_step: 0, revision: 1}], finished: null, warnings: []};
}

export function mock(): Plugin {
  return {name: 'torchgraph-mock', configureServer(server) {
    server.middlewares.use('/api', (request: IncomingMessage, response: ServerResponse) => {
      try { const body = respond(new URL(request.url ?? '/', 'http://x')); const binary = Buffer.isBuffer(body); response.setHeader('content-type', binary ? 'application/octet-stream' : 'application/json'); response.end(binary ? body : JSON.stringify(body)); }
      catch (error) { response.statusCode = 404; response.end(JSON.stringify({error: (error as Error).message})); }
    });
  }};
}
