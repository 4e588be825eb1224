/** The page's script: it completes what the server has rendered. */
import { MAX_PAGE_BATCH } from '../limits.js';
import { Batch } from './batch.js';
import { InputError, readInput, yieldToBrowser } from './input.js';
import { loadMap, WorldMap } from './map.js';
import { type CountryCount, DOWNLOADS, type Result } from './results.js';
import { keyState, lookUp, lookUpSelf, RequestError, revokeKey, signUp } from './service.js';

/** Pasted text that is longer than this, in characters, is kept like a file: browsers insert it into a field slowly. */
const MAX_FIELD_TEXT = 10_000;

/** How often the results of a running batch are drawn, in milliseconds. */
const DRAW_MS = 400;

const SVG = 'http://www.w3.org/2000/svg';

function byId<Type extends HTMLElement>(id: string): Type {
  return document.getElementById(id) as Type;
}

const numberText = (value: number): string => value.toLocaleString('en-US');
const percent = (part: number, whole: number): string => `${whole === 0 ? 0 : ((100 * part) / whole).toFixed(1)}%`;

/** Returns what to tell about an error. Other errors than expected ones are bugs, which the console shows. */
function problemOf(error: unknown): string {
  if (error instanceof RequestError || error instanceof InputError) return error.message;
  throw error;
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Makes an element with text or children. */
function element(name: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** The same list as the server renders. */
function resultList({ ip, country, country_code, is_eu }: Result): HTMLElement {
  const code = element('span', country_code ?? '');
  code.className = 'code';
  const list = element('dl');
  list.className = 'result';
  list.append(
    element('dt', 'Address'),
    element('dd', element('code', ip)),
    element('dt', 'Country'),
    country === null ? element('dd', 'no country') : element('dd', country, ' ', code),
    element('dt', 'European Union'),
    element('dd', is_eu ? 'yes' : 'no'),
  );
  return list;
}

function problem(text: string): HTMLElement {
  const paragraph = element('p', text);
  paragraph.className = 'problem';
  return paragraph;
}

/** Counts of the last batch or lookup; the map is drawn when it is loaded. */
let shown: readonly CountryCount[] = [];
let map: WorldMap | undefined;

function showOnMap(counts: readonly CountryCount[]): void {
  shown = counts;
  map?.show(counts);
}

function countOf({ country, country_code, is_eu }: Result): CountryCount {
  return { code: country_code ?? undefined, name: country ?? '', isEu: is_eu, count: 1 };
}

async function startMap(): Promise<void> {
  const svg = await loadMap(`${byId('main').dataset.assets}/world.svg`);
  if (svg === undefined) return;
  byId('map-section').hidden = false;
  byId('map').replaceChildren(svg);
  map = new WorldMap(svg, byId('map-label'), byId('legend'));
  map.show(shown);
}

/** Shows the visitor's other address, if a server for it is configured and can be reached. */
async function startSingleStack(id: string): Promise<void> {
  const part = document.getElementById(id);
  if (part === null) return;
  try {
    const result = await lookUpSelf(part.dataset.url!, AbortSignal.timeout(10_000));
    part.querySelector('.slot')!.replaceChildren(resultList(result));
    part.hidden = false;
  } catch {
    // The visitor has no address of this family, or no way to this server: there is nothing to show.
  }
}

function startLookup(): void {
  const form = byId<HTMLFormElement>('lookup');
  const input = byId<HTMLInputElement>('ip');
  const answer = byId('answer');
  let running: AbortController | undefined;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    running?.abort();
    running = new AbortController();
    answer.setAttribute('aria-busy', 'true');
    try {
      const result = await lookUp(input.value.trim(), running.signal);
      answer.replaceChildren(resultList(result));
      showOnMap([countOf(result)]);
    } catch (error) {
      // A newer lookup is running.
      if (isAbort(error)) return;
      answer.replaceChildren(problem(problemOf(error)));
    }
    answer.removeAttribute('aria-busy');
  });
}

/** Returns a row of the table of counts, with a bar. */
function countRow({ code, name, isEu, count }: CountryCount, total: number, most: number): HTMLElement {
  const country = element('th', name);
  country.setAttribute('scope', 'row');
  const cells = [code ?? '', code === undefined ? '' : isEu ? 'yes' : 'no'].map((text) => element('td', text));
  const numbers = [numberText(count), percent(count, total)].map((text) => {
    const cell = element('td', text);
    cell.className = 'number';
    return cell;
  });
  const bar = document.createElementNS(SVG, 'svg');
  bar.setAttribute('viewBox', '0 0 100 10');
  bar.setAttribute('preserveAspectRatio', 'none');
  bar.setAttribute('class', 'bar');
  bar.setAttribute('aria-hidden', 'true');
  const rectangle = document.createElementNS(SVG, 'rect');
  rectangle.setAttribute('width', ((100 * count) / most).toFixed(1));
  rectangle.setAttribute('height', '10');
  bar.append(rectangle);
  return element('tr', country, ...cells, ...numbers, element('td', bar));
}

function drawResults({ results }: Batch): void {
  const counts = results.counts();
  const { length } = results.answered;
  byId('results').hidden = length === 0;
  const rows = counts.map((count) => countRow(count, length, counts[0]!.count));
  if (results.invalid > 0) {
    const row = { code: undefined, name: 'Not an address', isEu: false, count: results.invalid };
    rows.push(countRow(row, length, Math.max(counts[0]?.count ?? 0, results.invalid)));
  }
  byId('counts')
    .querySelector('tbody')!
    .replaceChildren(...rows);
  byId('share').textContent =
    `In the European Union: ${numberText(results.inUnion)} of ${numberText(results.located)} addresses with a country, ${percent(results.inUnion, results.located)}.`;
  showOnMap(counts);
}

/** Offers the results as a file. */
async function download(batch: Batch, format: keyof typeof DOWNLOADS): Promise<void> {
  const { type, head, row } = DOWNLOADS[format];
  const parts: string[] = [head];
  const { answered } = batch.results;
  for (let at = 0; at < answered.length; at += 1_000) {
    parts.push(
      answered
        .slice(at, at + 1_000)
        .map(row)
        .join(''),
    );
    await yieldToBrowser();
  }
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `ipatlas.${format}`;
  link.click();
  // The browser reads the address later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

class BatchForm {
  readonly #form = byId<HTMLFormElement>('batch');
  readonly #text = byId<HTMLTextAreaElement>('text');
  readonly #file = byId<HTMLInputElement>('file');
  readonly #start = byId<HTMLButtonElement>('start');
  readonly #cancel = byId<HTMLButtonElement>('cancel');
  readonly #progress = byId<HTMLProgressElement>('progress');
  /** A file, or text that is too long for the field. */
  #source: string | Blob | undefined;
  #batch: Batch | undefined;
  #running: AbortController | undefined;
  #drawn = 0;

  listen(): void {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#run();
    });
    this.#cancel.addEventListener('click', () => this.#running?.abort());
    this.#file.addEventListener('change', () => {
      const file = this.#file.files?.[0];
      if (file !== undefined) this.#use(file, file.name);
    });
    this.#text.addEventListener('input', () => this.#use(undefined, ''));
    this.#text.addEventListener('paste', (event) => {
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (text.length <= MAX_FIELD_TEXT) return;
      event.preventDefault();
      this.#use(text, 'pasted text');
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
      else if (text !== '') this.#use(text, 'dropped text');
    });
    for (const format of ['csv', 'jsonl'] as const)
      byId(format).addEventListener('click', () => {
        if (this.#batch !== undefined) void download(this.#batch, format);
      });
  }

  /** Takes a source in place of the text field. @param name of it, to show */
  #use(source: string | Blob | undefined, name: string): void {
    this.#source = source;
    this.#reset();
    if (source === undefined) {
      this.#file.value = '';
    } else {
      this.#text.value = '';
    }
    byId('source').textContent = source === undefined ? '' : name.slice(0, 100);
  }

  #reset(): void {
    this.#running?.abort();
    this.#batch = undefined;
    this.#start.textContent = 'Look up all';
  }

  #tell(text: string): void {
    byId('status').textContent = text;
  }

  async #run(): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running?.abort();
    this.#running = controller;
    this.#start.disabled = true;
    this.#cancel.disabled = false;
    try {
      await this.#lookUp(signal);
    } catch (error) {
      if (isAbort(error)) this.#tell(`Canceled. ${this.#doneText()}`);
      else this.#tell(`${problemOf(error)} ${this.#doneText()}`);
      if (this.#batch !== undefined) {
        drawResults(this.#batch);
        this.#start.textContent = 'Continue';
      }
    } finally {
      if (this.#running === controller) {
        this.#running = undefined;
        this.#start.disabled = false;
        this.#cancel.disabled = true;
      }
    }
  }

  async #lookUp(signal: AbortSignal): Promise<void> {
    // A batch that was canceled or failed goes on from where it stopped.
    let batch = this.#batch;
    let note = '';
    if (batch === undefined || batch.isComplete) {
      this.#batch = undefined;
      byId('results').hidden = true;
      this.#progress.hidden = false;
      this.#progress.removeAttribute('value');
      this.#tell('Reading …');
      const { entries, linesWithoutAddress, isFull } = await readInput(
        this.#source ?? this.#text.value,
        MAX_PAGE_BATCH,
        signal,
      );
      if (entries.length === 0) throw new InputError('There is no address in this text.');
      if (linesWithoutAddress > 0) note += ` ${numberText(linesWithoutAddress)} lines have no address.`;
      if (isFull) note += ` Only the first ${numberText(MAX_PAGE_BATCH)} are looked up.`;
      batch = new Batch(entries);
      this.#batch = batch;
    }
    const running = batch;
    const tellProgress = (): void => {
      this.#progress.value = running.done / running.total;
      // A status that changes with each request would make a screen reader talk without end.
      if (performance.now() - this.#drawn < DRAW_MS && !running.isComplete) return;
      this.#drawn = performance.now();
      drawResults(running);
    };
    this.#progress.hidden = false;
    this.#progress.value = running.done / running.total;
    this.#tell(`Looking up ${numberText(running.total)} addresses …${note}`);
    await running.run(signal, {
      onProgress: tellProgress,
      onWait: (seconds) => this.#tell(`The rate is used up. It goes on in ${seconds} s. ${this.#doneText()}`),
    });
    this.#start.textContent = 'Look up all';
    this.#tell(`Done. ${this.#doneText()}${note}`);
  }

  #doneText(): string {
    return this.#batch === undefined
      ? ''
      : `${numberText(this.#batch.done)} of ${numberText(this.#batch.total)} looked up.`;
  }
}

function startKeys(): void {
  const make = document.getElementById('make-key') as HTMLButtonElement | null;
  if (make === null) return;
  const status = byId('key-status');
  const input = byId<HTMLInputElement>('key-input');
  /** Runs an action and tells its outcome. */
  async function act(button: HTMLButtonElement | undefined, action: () => Promise<string>): Promise<void> {
    if (button !== undefined) button.disabled = true;
    try {
      status.textContent = await action();
    } catch (error) {
      status.textContent = problemOf(error);
    } finally {
      if (button !== undefined) button.disabled = false;
    }
  }
  make.addEventListener('click', () =>
    act(make, async () => {
      const { id, key, rate } = await signUp();
      byId('key-text').textContent = key;
      byId('new-key').hidden = false;
      input.value = key;
      for (const example of ['curl', 'client']) {
        const code = byId(example);
        code.textContent = code.textContent!.replace(/<API_KEY>|ipa_[\w-]+/, key);
      }
      return `This is key ${id}, for ${numberText(rate)} addresses a minute. Copy it now: it is shown only once.`;
    }),
  );
  byId<HTMLFormElement>('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    void act(undefined, async () => {
      const { id, rate, remaining } = await keyState(input.value.trim());
      const left = remaining === undefined ? '' : `, ${numberText(remaining)} of them left now`;
      return rate === 0 ? `Key ${id} has no limit.` : `Key ${id}: ${numberText(rate)} addresses a minute${left}.`;
    });
  });
  const revoke = byId<HTMLButtonElement>('revoke-key');
  revoke.addEventListener('click', () =>
    act(revoke, async () => {
      await revokeKey(input.value.trim());
      input.value = '';
      byId('new-key').hidden = true;
      byId('key-text').textContent = '';
      return 'The key is revoked.';
    }),
  );
}

function startCopying(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('.copy')) {
    button.addEventListener('click', async () => {
      const source = byId(button.dataset.copy!);
      try {
        await navigator.clipboard.writeText(source.textContent ?? '');
        button.textContent = 'Copied';
      } catch {
        // Without permission to the clipboard, the text is selected instead.
        getSelection()?.selectAllChildren(source);
        button.textContent = 'Selected';
      }
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 2_000);
    });
  }
}

for (const part of document.querySelectorAll<HTMLElement>('.script-only')) part.hidden = false;
startLookup();
new BatchForm().listen();
startKeys();
startCopying();
void startMap();
void startSingleStack('own-ipv4');
void startSingleStack('own-ipv6');
