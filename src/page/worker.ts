/** The worker of the page: it reads a batch and looks it up, so that the page stays responsive. */
import { MAX_BROWSER_BATCH, MAX_PAGE_BATCH } from '../limits.js';
import type { NetworkDatabase } from '../lookup/database.js';
import { load, loadNetworks } from '../lookup/index.js';
import { type Answers, answersOf, Batch, serverAnswers } from './batch.js';
import type { Filter, Order } from './entries.js';
import { loadKernel } from './package.js';
import { PageError, problemOf, RequestError } from './problems.js';
import { type FromWorker, ROWS_PER_BLOCK, type ToWorker } from './protocol.js';
import { columnsOf, DOWNLOADS, type DownloadFormat, type Hiding, type Row } from './results.js';
import { batchSize, isAbort, lookUpBatch, setBase, untilAborted } from './service.js';

/** How often progress is told, in milliseconds. */
const TELL_MS = 200;

/** Rows of a download that are joined at a time. */
const ROWS_PER_PART = 5_000;

const tell = (message: FromWorker): void => globalThis.postMessage(message);

let batch: Batch | undefined;
let db: string | undefined;
let answers: Answers | undefined;
/** Undefined if rows have no networks; and when they are loaded, if they are wanted. */
let networks: NetworkDatabase | undefined;
let areNetworksLoaded = Promise.resolve();
let running: AbortController | undefined;
/** The rows that are shown. */
let view = { number: 0, filter: 'all' as Filter, order: { column: 'line', descending: false } as Order };
let selected: Uint32Array = new Uint32Array();
let toldAt = 0;

/** Loads the database, which the server may have replaced since the last batch; or prepares to ask the server. */
async function findAnswers(): Promise<Answers> {
  if (db === undefined) {
    return serverAnswers(await batchSize(), (addresses, signal) =>
      lookUpBatch(addresses, signal, (seconds) => {
        if (batch !== undefined) tell({ said: 'progress', progress: batch.progress() });
        tell({ said: 'wait', seconds });
      }),
    );
  }
  try {
    return answersOf(await load(db));
  } catch {
    throw new RequestError('The database cannot be loaded from the server.', 0);
  }
}

async function useNetworks(url: string | undefined): Promise<void> {
  let problem = '';
  try {
    networks = url === undefined ? undefined : await loadNetworks(url);
  } catch {
    networks = undefined;
    problem = 'The networks cannot be loaded from the server.';
  }
  tell({ said: 'networks', areShown: networks !== undefined, problem });
}

/** Returns a row with the network of its address, if networks are wanted. */
function withNetwork(row: Row): Row {
  if (networks === undefined || row.result === undefined) return row;
  return { ...row, result: { ...row.result, ...networks.network(row.text) } };
}

async function run(current: Batch): Promise<void> {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  const { signal } = controller;
  const start = performance.now();
  const onProgress = (): void => {
    if (performance.now() - toldAt < TELL_MS) return;
    toldAt = performance.now();
    tell({ said: 'progress', progress: current.progress() });
  };
  let outcome: 'done' | 'canceled' | 'failed' = 'done';
  let problem = '';
  try {
    await untilAborted(loadKernel(), signal);
    if (!current.isRead) await current.read(signal, onProgress);
    if (current.entries.length === 0) throw new PageError('There is no address in this text.');
    answers = await untilAborted(findAnswers(), signal);
    await untilAborted(areNetworksLoaded, signal);
    await current.run(answers, signal, onProgress);
  } catch (error) {
    outcome = isAbort(error) ? 'canceled' : 'failed';
    if (outcome === 'failed') problem = problemOf(error);
  }
  // A newer batch may be running.
  if (current !== batch) return;
  tell({ said: 'end', outcome, problem, progress: current.progress(), seconds: (performance.now() - start) / 1_000 });
}

function select(): void {
  selected =
    batch === undefined
      ? new Uint32Array()
      : batch.entries.select(view, batch.done, (ip) => networks?.network(ip)?.asn);
  tell({ said: 'selected', view: view.number, count: selected.length });
}

function sendRows(block: number): void {
  const places = selected.subarray(block * ROWS_PER_BLOCK, (block + 1) * ROWS_PER_BLOCK);
  const rows = Array.from(places, (at) => withNetwork(batch!.row(at, answers ?? { reason: () => undefined })));
  tell({ said: 'rows', view: view.number, block, rows });
}

function download(format: DownloadFormat, hiding: Hiding): void {
  const { type, head, row } = DOWNLOADS[format];
  const columns = columnsOf(networks !== undefined);
  const parts = [head(columns)];
  for (let at = 0; at < selected.length; at += ROWS_PER_PART) {
    const places = selected.subarray(at, at + ROWS_PER_PART);
    parts.push(Array.from(places, (place) => row(withNetwork(batch!.entries.row(place)), columns, hiding)).join(''));
  }
  tell({ said: 'file', format, file: new Blob(parts, { type }) });
}

globalThis.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  switch (data.do) {
    case 'start':
      setBase(data.base);
      db = data.db;
      batch = new Batch(data.source, db === undefined ? MAX_PAGE_BATCH : MAX_BROWSER_BATCH, data.log, data.lang);
      selected = new Uint32Array();
      void run(batch);
      break;
    case 'networks':
      areNetworksLoaded = areNetworksLoaded.then(() => useNetworks(data.url));
      break;
    case 'continue':
      void run(batch!);
      break;
    case 'cancel':
      running?.abort();
      break;
    case 'select':
      view = { number: data.view, filter: data.filter, order: data.order };
      select();
      break;
    case 'rows':
      if (data.view === view.number) sendRows(data.block);
      break;
    case 'download':
      download(data.format, data.hiding);
      break;
  }
});
