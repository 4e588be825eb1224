/** The batch on the page: its form, its progress, and its results as figures, rows, shares and a map. */
import { type Html, html } from '../html.js';
import type { Progress } from './batch.js';
import { byId, countDown, countText, numberText, percent, sizeText } from './dom.js';
import type { Filter } from './entries.js';
import type { WorldMap } from './map.js';
import type { FromWorker, ToWorker } from './protocol.js';
import type { CountryCount, DownloadFormat, Hiding } from './results.js';
import { RowTable } from './table.js';

/** Pasted text that is longer than this, in characters, is kept like a file: browsers insert it into a field slowly. */
const MAX_FIELD_TEXT = 10_000;

/** Characters of a long text that are taken at a time; a pair of surrogates that is cut is not part of an address. */
const PIECE = 4_000_000;

/** Countries that have a chip of their own besides the general ones. */
const CHIPS = 2;

/** Countries in the list of shares while the batch runs: all of them would take most of the time of a drawing. */
const SHARES_WHILE_RUNNING = 20;

/** Returns a bar. @param share 0 to 1 */
function bar(share: number): Html {
  const width = Math.max(0.5, 100 * share).toFixed(1);
  return html`<svg viewBox="0 0 100 8" preserveAspectRatio="none" class="bar" aria-hidden="true"><rect width="${width}" height="8"/></svg>`;
}

export class BatchView {
  readonly #form = byId<HTMLFormElement>('batch');
  readonly #text = byId<HTMLTextAreaElement>('text');
  readonly #file = byId<HTMLInputElement>('file');
  readonly #log = byId<HTMLSelectElement>('log');
  readonly #start = byId<HTMLButtonElement>('start');
  readonly #cancel = byId<HTMLButtonElement>('cancel');
  readonly #progress = byId<HTMLProgressElement>('progress');
  readonly #status = byId('status');
  readonly #db = this.#form.dataset.db ?? '';
  /** Null if the server has no networks, or browsers must not load them. */
  readonly #networks = document.getElementById('networks') as HTMLInputElement | null;
  readonly #script: string;
  readonly #lang: string;
  #worker: Worker | undefined;
  readonly #table: RowTable;
  /** A file, or text that is too long for the field; and how to call it. */
  #source: { content: Blob; name: string } | undefined;
  #map: WorldMap | undefined;
  #counts: CountryCount[] = [];
  #filter: Filter = 'all';
  #view = 0;
  #selected = 0;
  #isRunning = false;
  #canContinue = false;
  /** How many were done when the rows were selected last. */
  #shownDone = 0;
  #endCountDown = (): void => {};

  /** @param script of the worker, which is loaded when it is needed; @param lang the language of the countries' names */
  constructor(script: string, lang: string) {
    this.#script = script;
    this.#lang = lang;
    this.#table = new RowTable(byId('table'), {
      onNeed: (block) => this.#send({ do: 'rows', view: this.#view, block }),
      onSort: () => this.#select(),
    });
    this.#listen();
  }

  /** Shows the counts on a map from now on. */
  useMap(map: WorldMap): void {
    this.#map = map;
    map.show(this.#counts);
  }

  /** Shows the rows of a country only, or those of another filter. */
  filterBy(filter: Filter): void {
    this.#filter = filter;
    this.#drawChips();
    this.#select();
  }

  #send(message: ToWorker): void {
    this.#worker ??= this.#newWorker();
    this.#worker.postMessage(message);
  }

  #newWorker(): Worker {
    const worker = new Worker(this.#script, { type: 'module' });
    worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => this.#hear(data));
    worker.addEventListener('error', ({ message }) => {
      // An error without a message means that the script was not loaded.
      const problem =
        message === undefined
          ? 'A part of this page cannot be loaded from the server.'
          : `Internal error (bug): ${message}.`;
      worker.terminate();
      this.#worker = undefined;
      if (this.#networks !== null) this.#networks.checked = false;
      byId('results').hidden = true;
      this.#restart();
      this.#stop(problem);
    });
    return worker;
  }

  #listen(): void {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#run();
    });
    this.#cancel.addEventListener('click', () => this.#send({ do: 'cancel' }));
    this.#file.addEventListener('change', () => {
      const file = this.#file.files?.[0];
      // So that choosing the same file again, after it changed, is an event.
      this.#file.value = '';
      if (file !== undefined) this.#use(file, file.name);
    });
    this.#networks?.addEventListener('change', ({ target }) => {
      const { checked, dataset } = target as HTMLInputElement;
      this.#send({ do: 'networks', url: checked ? new URL(dataset.url!, document.baseURI).href : undefined });
    });
    this.#text.addEventListener('input', () => this.#use(undefined, ''));
    this.#log.addEventListener('change', () => this.#restart());
    this.#text.addEventListener('paste', (event) => {
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (text.length <= MAX_FIELD_TEXT) return;
      event.preventDefault();
      void this.#useText(text, 'Pasted text');
    });
    this.#form.addEventListener('dragover', (event) => {
      event.preventDefault();
      this.#form.classList.add('drop');
    });
    this.#form.addEventListener('dragleave', () => this.#form.classList.remove('drop'));
    this.#form.addEventListener('drop', (event) => {
      event.preventDefault();
      this.#form.classList.remove('drop');
      const file = event.dataTransfer?.files[0];
      const text = event.dataTransfer?.getData('text/plain') ?? '';
      if (file !== undefined) this.#use(file, file.name);
      else if (text !== '') void this.#useText(text, 'Dropped text');
    });
    for (const id of ['chips', 'counts']) {
      byId(id).addEventListener('click', ({ target }) => {
        const filter = target instanceof HTMLButtonElement ? target.dataset.filter : undefined;
        if (filter !== undefined) this.filterBy(filter);
      });
    }
    for (const format of ['csv', 'jsonl'] as const)
      byId(format).addEventListener('click', () => {
        this.#send({ do: 'download', format, hiding: byId<HTMLSelectElement>('hiding').value as Hiding });
      });
  }

  /** Takes a text in place of the text field, in pieces, so that the page stays responsive. */
  async #useText(text: string, name: string): Promise<void> {
    const pieces: Blob[] = [];
    for (let at = 0; at < text.length; at += PIECE) {
      pieces.push(new Blob([text.slice(at, at + PIECE)]));
      await new Promise((resolve) => setTimeout(resolve));
    }
    this.#use(new Blob(pieces), name);
  }

  /** Takes a source in place of the text field. @param name of it, to show */
  #use(content: Blob | undefined, name: string): void {
    this.#restart();
    if (content === undefined) {
      this.#source = undefined;
      byId('source').textContent = '';
      return;
    }
    this.#text.value = '';
    this.#source = { content, name: `${name.slice(0, 100)} · ${sizeText(content.size)}` };
    byId('source').textContent = this.#source.name;
    // What stays in the browser needs no further consent.
    if (this.#db !== '') this.#run();
  }

  /** The next run begins anew. */
  #restart(): void {
    this.#canContinue = false;
    this.#start.textContent = 'Look up all';
  }

  #run(): void {
    this.#isRunning = true;
    this.#start.disabled = true;
    this.#cancel.hidden = false;
    this.#progress.hidden = false;
    this.#progress.removeAttribute('value');
    this.#tell('Reading …');
    if (this.#canContinue) {
      this.#tell('Going on …');
      this.#send({ do: 'continue' });
      return;
    }
    byId('results').hidden = true;
    this.#filter = 'all';
    this.#shownDone = 0;
    const db = this.#db === '' ? undefined : new URL(this.#db, document.baseURI).href;
    const source = this.#source?.content ?? new Blob([this.#text.value]);
    this.#send({ do: 'start', source, db, base: document.baseURI, log: this.#log.value, lang: this.#lang });
  }

  /** Tells how far it is. */
  #tell(text: string): void {
    this.#endCountDown();
    this.#endCountDown = () => {};
    this.#status.textContent = text;
  }

  #hear(message: FromWorker): void {
    switch (message.said) {
      case 'progress':
        if (this.#isRunning) this.#onProgress(message.progress);
        break;
      case 'networks':
        this.#networks!.checked = message.areShown;
        this.#table.showNetworks(message.areShown);
        if (message.problem !== '') this.#tell(message.problem);
        this.#select();
        break;
      case 'wait':
        this.#tell('The rate is used up. It goes on in ');
        this.#endCountDown = countDown(message.seconds, this.#status);
        break;
      case 'end':
        this.#onEnd(message);
        break;
      case 'selected':
        if (message.view !== this.#view) break;
        this.#table.reset(message.count, this.#isRunning);
        this.#selected = message.count;
        this.#drawChips();
        break;
      case 'rows':
        if (message.view === this.#view) this.#table.fill(message.block, message.rows);
        break;
      case 'file':
        offer(message.file, message.format);
        break;
    }
  }

  #onProgress(progress: Progress): void {
    const { lines, total, done, isRead } = progress;
    if (!isRead) {
      this.#tell(`Reading: ${countText(lines, 'line')}, ${countText(total, 'address', 'addresses')} …`);
      return;
    }
    this.#progress.value = total === 0 ? 1 : done / total;
    this.#tell(`Looking up: ${numberText(done)} of ${numberText(total)} …`);
    this.#draw(progress);
  }

  /** Ends the run, and says how. */
  #stop(text: string, hasFailed = true): void {
    this.#isRunning = false;
    this.#start.disabled = false;
    this.#cancel.hidden = true;
    this.#progress.hidden = true;
    this.#tell(text);
    this.#status.classList.toggle('problem', hasFailed);
  }

  #onEnd({ outcome, problem, progress, seconds }: FromWorker & { said: 'end' }): void {
    const { total, done, lines, linesWithoutAddress, isFull, readAs } = progress;
    if (this.#source !== undefined && progress.isRead) {
      byId('source').textContent = `${this.#source.name} · ${countText(lines, 'line')}`;
    }
    this.#canContinue = outcome !== 'done' && progress.isRead && done < total;
    this.#start.textContent = this.#canContinue ? 'Continue' : 'Look up all';
    const parts = [`${numberText(done)} of ${countText(total, 'address', 'addresses')} looked up.`];
    if (outcome === 'canceled') parts.unshift('Canceled.');
    else if (outcome === 'failed') parts.unshift(problem);
    else
      parts[0] = `Done: ${countText(total, 'address', 'addresses')} in ${countText(lines, 'line')}, ${seconds.toFixed(1)} s.`;
    if (outcome === 'failed' && total === 0) parts.pop();
    if (linesWithoutAddress > 0) {
      parts.push(`${countText(linesWithoutAddress, 'line')} ${linesWithoutAddress === 1 ? 'has' : 'have'} no address.`);
    }
    if (readAs !== '') parts.push(`Read as ${readAs}.`);
    if (isFull) parts.push(`Only the first ${numberText(total)} are looked up.`);
    this.#stop(parts.join(' '), outcome === 'failed');
    this.#draw(progress);
    this.#select();
  }

  #select(): void {
    const { order } = this.#table;
    this.#send({ do: 'select', view: ++this.#view, filter: this.#filter, order });
  }

  #draw(progress: Progress): void {
    const { done, counts } = progress;
    byId('results').hidden = done === 0;
    if (done === this.#shownDone && this.#isRunning) return;
    this.#shownDone = done;
    this.#counts = counts;
    this.#drawFigures(progress);
    this.#drawShares(progress);
    this.#map?.show(counts);
    this.#drawChips();
    if (this.#isRunning) this.#select();
  }

  #drawFigures({ done, counts, located, inUnion, invalid }: Progress): void {
    const figure = (value: string, name: string): Html => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
    const figures = [
      figure(numberText(done), done === 1 ? 'address' : 'addresses'),
      figure(numberText(counts.filter(({ code }) => code !== undefined).length), 'countries'),
      figure(percent(inUnion, located), 'in the Union'),
      figure(numberText(done - invalid - located), 'without a country'),
    ];
    if (invalid > 0) figures.push(figure(numberText(invalid), invalid === 1 ? 'not an address' : 'not addresses'));
    byId('figures').innerHTML = html`${figures}`.text;
  }

  #drawShares({ done, invalid, counts }: Progress): void {
    const rows = [...counts];
    if (invalid > 0) rows.push({ code: 'invalid', name: 'Not an address', isEu: false, count: invalid });
    const most = Math.max(1, ...rows.map(({ count }) => count));
    const shown = rows
      .slice(0, this.#isRunning ? SHARES_WHILE_RUNNING : rows.length)
      .map(
        ({ code, name, count }) =>
          html`<tr><th scope="row"><button type="button" data-filter="${code ?? 'none'}">${name}</button></th><td>${bar(count / most)}</td><td>${percent(count, done)}</td><td>${numberText(count)}</td></tr>`,
      );
    byId('counts').querySelector('tbody')!.innerHTML = html`${shown}`.text;
  }

  #drawChips(): void {
    const named = new Map(this.#counts.map(({ code, name }) => [code ?? 'none', name]));
    const chips = new Map<Filter, string>([['all', 'All']]);
    if (this.#counts.some(({ isEu }) => isEu)) chips.set('union', 'In the Union');
    for (const { code, name } of this.#counts.filter(({ code }) => code !== undefined).slice(0, CHIPS))
      chips.set(code!, name);
    if (named.has('none')) chips.set('none', 'No country');
    if (!chips.has(this.#filter)) {
      chips.set(
        this.#filter,
        named.get(this.#filter) ?? (this.#filter === 'invalid' ? 'Not an address' : this.#filter),
      );
    }
    const container = byId('chips');
    const focused = container.contains(document.activeElement) ? document.activeElement?.textContent : undefined;
    const drawn = [...chips].map(
      ([filter, name]) =>
        html`<button type="button" data-filter="${filter}" aria-pressed="${String(filter === this.#filter)}">${name}</button>`,
    );
    container.innerHTML = html`${drawn}`.text;
    for (const chip of container.children) if (chip.textContent === focused) (chip as HTMLElement).focus();
    byId('shown').textContent = countText(this.#selected, 'row');
  }
}

/** Offers a file. */
function offer(file: Blob, format: DownloadFormat): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = `ipatlas.${format}`;
  link.click();
  // The browser reads the address later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
