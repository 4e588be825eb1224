/** The script of the first page: it completes what the server has rendered. */
import { namesIn } from '../country/names.js';
import { html } from '../html.js';
import { answerHtml, historyHtml, INVALID_ADDRESS, NO_DATABASE, type Notice, noticeHtml } from './answer.js';
import { BatchView } from './batch-view.js';
import { byId, countDown, startCopying } from './dom.js';
import { loadDrawing, WorldMap } from './map.js';
import { problemOf, RequestError } from './problems.js';
import type { Period, Result } from './results.js';
import { historyOf, isAbort, lookUp, lookUpSelf } from './service.js';

const { assets, lang = 'en' } = byId('main').dataset;
const nameOf = namesIn(lang);

/** Returns an answer with the name of its country in the visitor's language. */
function named<Answer extends Result | Period>(answer: Answer): Answer {
  const { country, country_code } = answer;
  return country == null || country_code == null ? answer : { ...answer, country: nameOf(country_code, country) };
}

/** The large answer: one at a time, and none while another is asked for. */
class Answer {
  readonly #form = byId<HTMLFormElement>('lookup');
  readonly #input = byId<HTMLInputElement>('ip');
  /** Undefined if the server has no history. */
  readonly #day = document.getElementById('at') as HTMLInputElement | null;
  readonly #answer = byId('answer');
  #code = this.#answer.dataset.code ?? '';
  #map: WorldMap | undefined;
  #running: AbortController | undefined;

  listen(): void {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#ask(this.#input.value.trim());
    });
    this.#answer.addEventListener('click', ({ target }) => {
      if (!(target instanceof HTMLElement)) return;
      const { history, again } = target.dataset;
      if (history !== undefined) void this.#showHistory(target);
      if (again !== undefined) void this.#ask(again);
    });
    for (const example of this.#form.querySelectorAll('a')) {
      example.addEventListener('click', (event) => {
        event.preventDefault();
        this.#input.value = example.textContent ?? '';
        void this.#ask(this.#input.value);
      });
    }
  }

  /** Shows the history of an address in place of the button that asks for it. */
  async #showHistory(pressed: HTMLElement): Promise<void> {
    const place = pressed.parentElement!;
    const tell = (text: string): void => place.replaceChildren(text);
    tell('…');
    try {
      const onWait = (seconds: number): void => tell(`Too many lookups. It goes on in ${seconds} s.`);
      const periods = await historyOf(pressed.dataset.history!, new AbortController().signal, onWait);
      place.innerHTML = historyHtml(periods.map(named), lang).text;
    } catch (error) {
      tell(problemOf(error));
    }
  }

  useMap(map: WorldMap): void {
    this.#map = map;
    this.#showOnMap();
  }

  #showOnMap(): void {
    const code = this.#code;
    this.#map?.show(code === '' ? [] : [{ code, name: '', isEu: false, count: 1 }]);
    this.#map?.zoomTo(code === '' ? [] : [code]);
  }

  #show(content: string, code: string): void {
    this.#answer.innerHTML = content;
    this.#code = code;
    this.#showOnMap();
  }

  /** Returns what is asked besides the address. @param day of the answer, `YYYY-MM-DD`; empty for now */
  #query(day: string): URLSearchParams {
    const query = new URLSearchParams();
    const include = this.#form.dataset.include ?? '';
    if (day !== '') query.set('at', day);
    if (include !== '') query.set('include', include);
    return query;
  }

  async #ask(address: string): Promise<void> {
    const day = this.#day?.value ?? '';
    this.#running?.abort();
    const controller = new AbortController();
    this.#running = controller;
    let endCountDown = (): void => {};
    this.#input.removeAttribute('aria-invalid');
    this.#answer.setAttribute('aria-busy', 'true');
    this.#show(noticeHtml(address, ['…', 'Looking up']).text, '');
    const onWait = (seconds: number): void => {
      this.#show(noticeHtml(address, ['Too many lookups', 'It goes on by itself in ']).text, '');
      endCountDown = countDown(seconds, this.#answer.querySelector('.hint')!);
    };
    try {
      const result = await lookUp(address, controller.signal, onWait, this.#query(day));
      if (result === undefined) {
        this.#input.setAttribute('aria-invalid', 'true');
        this.#show(noticeHtml(address, INVALID_ADDRESS).text, '');
      } else {
        const hasHistory = this.#day !== null;
        this.#show(answerHtml(named(result), { day, hasHistory, lang }).text, result.country_code ?? '');
      }
    } catch (error) {
      // A newer lookup is running.
      if (isAbort(error)) return;
      this.#showProblem(address, error);
    } finally {
      endCountDown();
    }
    this.#answer.removeAttribute('aria-busy');
  }

  #showProblem(address: string, error: unknown): void {
    const offline: Notice = ['Offline', 'The server cannot be reached.'];
    const notices: Record<number, Notice> = { 0: offline, 503: NO_DATABASE };
    const status = error instanceof RequestError ? error.status : -1;
    const notice = noticeHtml(address, notices[status] ?? ['No answer', problemOf(error)]);
    // A day that is not kept now is not kept a moment later.
    const again = status === 400 ? undefined : html`<button type="button" data-again="${address}">Try again</button>`;
    this.#show(html`${notice}${again}`.text, '');
  }
}

/** Shows the visitor's other address, if a server for it is configured and can be reached. */
async function startSingleStack(id: string): Promise<void> {
  const part = document.getElementById(id);
  if (part === null) return;
  const shown = part.querySelector('dd')!;
  let result: Result;
  try {
    result = await lookUpSelf(part.dataset.url!, AbortSignal.timeout(10_000));
  } catch {
    // The visitor has no address of this family, or no way to this server.
    shown.textContent = 'none';
    return;
  }
  shown.innerHTML = html`<code>${result.ip}</code> ${named(result).country ?? 'no country'}`.text;
}

async function start(): Promise<void> {
  startCopying();
  const answer = new Answer();
  answer.listen();
  void startSingleStack('own-ipv4');
  void startSingleStack('own-ipv6');
  const batch = document.getElementById('batch') === null ? undefined : new BatchView(`${assets}/worker.js`, lang);
  const drawing = await loadDrawing(`${assets}/world.svg`);
  if (drawing === undefined) return;
  answer.useMap(new WorldMap(byId('answer-map'), drawing, { label: 'Map of the answer', nameOf }));
  if (batch === undefined) return;
  const onPick = (code: string): void => batch.filterBy(code);
  batch.useMap(new WorldMap(byId('batch-map'), drawing, { label: 'Map of the addresses by country', nameOf, onPick }));
}

void start();
