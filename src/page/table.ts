/** A table of any number of rows, of which only those are drawn that can be seen. */
import { type Html, html } from '../html.js';
import { numberText } from './dom.js';
import type { Order, SortColumn } from './entries.js';
import { ROWS_PER_BLOCK } from './protocol.js';
import type { Row } from './results.js';

/** Browsers place no element beyond some 17 million pixels; a longer table is scrolled in proportion. */
const MAX_HEIGHT = 8_000_000;

/** Rows that are drawn above and below those that can be seen. */
const EXTRA_ROWS = 6;

const COLUMNS: readonly (readonly [SortColumn, string])[] = [
  ['line', 'Line'],
  ['address', 'Address'],
  ['country', 'Country'],
  ['union', 'EU'],
  ['network', 'Announced by'],
];

export interface TableEvents {
  /** Asks for a block of {@link ROWS_PER_BLOCK} rows, which {@link RowTable.fill} takes. */
  onNeed(block: number): void;
  onSort(order: Order): void;
}

function cell(column: string, content: string | Html): Html {
  return html`<div role="cell" class="c-${column}">${content}</div>`;
}

/** The table without rows. */
const EMPTY = html`<div class="scroller" tabindex="0" role="region" aria-label="Addresses, rows"><div role="table" aria-label="Addresses">
<div role="rowgroup" class="heads"><div role="row" aria-rowindex="1" class="row-head">${COLUMNS.map(([column, name]) => html`<div role="columnheader" class="c-${column}" data-column="${column}"><button type="button">${name}</button></div>`)}</div></div>
<div role="rowgroup" class="space"></div></div></div>`;

/** Returns the country of a row as text. */
function countryOf({ result, reason }: Row): string {
  if (result === undefined) return 'not an address';
  return result.country ?? (reason === undefined ? 'no country' : `no country: ${reason.replaceAll('-', ' ')}`);
}

export class RowTable {
  readonly #events: TableEvents;
  readonly #scroller: HTMLElement;
  readonly #table: HTMLElement;
  readonly #space: HTMLElement;
  readonly #headers: readonly HTMLElement[];
  #order: Order = { column: 'line', descending: false };
  #count = 0;
  /** Rows by block. */
  readonly #blocks = new Map<number, Row[]>();
  readonly #asked = new Set<number>();
  /** The first row that is seen, with its fraction. */
  #top = 0;
  /** Where the table was scrolled to from here. */
  #scrolledTo = 0;
  #rowHeight = 40;

  constructor(container: HTMLElement, events: TableEvents) {
    this.#events = events;
    container.innerHTML = EMPTY.text;
    this.#scroller = container.querySelector('.scroller')!;
    this.#table = container.querySelector('[role=table]')!;
    this.#space = container.querySelector('.space')!;
    this.#headers = [...container.querySelectorAll<HTMLElement>('[role=columnheader]')];
    for (const header of this.#headers) {
      header.firstElementChild!.addEventListener('click', () => this.#sortBy(header.dataset.column as SortColumn));
    }
    this.#markOrder();
    this.#networkHeader.hidden = true;
    this.#scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    this.#scroller.addEventListener('keydown', (event) => this.#onKey(event));
    this.#scroller.addEventListener('wheel', (event) => this.#onWheel(event), { passive: false });
    new ResizeObserver(() => this.#measure()).observe(this.#scroller);
  }

  get #networkHeader(): HTMLElement {
    return this.#headers.at(-1)!;
  }

  /** Shows or hides the column of the networks. */
  showNetworks(areShown: boolean): void {
    this.#table.classList.toggle('with-networks', areShown);
    this.#networkHeader.hidden = !areShown;
    if (!areShown && this.#order.column === 'network') {
      this.#order = { column: 'line', descending: false };
      this.#markOrder();
    }
    this.#measure();
  }

  /** Shows other rows. @param keepPlace whether more rows of the same were found */
  reset(count: number, keepPlace: boolean): void {
    this.#count = count;
    this.#blocks.clear();
    this.#asked.clear();
    this.#table.setAttribute('aria-rowcount', String(count + 1));
    this.#scrollTo(keepPlace ? this.#top : 0);
  }

  /** Takes rows that were asked for. */
  fill(block: number, rows: Row[]): void {
    this.#blocks.set(block, rows);
    this.#draw();
  }

  #sortBy(column: SortColumn): void {
    const descending = column === this.#order.column && !this.#order.descending;
    this.#order = { column, descending };
    this.#markOrder();
    this.#events.onSort(this.#order);
  }

  /** The order of the rows. */
  get order(): Order {
    return this.#order;
  }

  #markOrder(): void {
    const { column, descending } = this.#order;
    for (const header of this.#headers) {
      if (header.dataset.column === column) header.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else header.removeAttribute('aria-sort');
    }
  }

  #ask(block: number): void {
    if (this.#asked.has(block)) return;
    this.#asked.add(block);
    this.#events.onNeed(block);
  }

  /** Height of the part in which rows are seen, in pixels. */
  get #viewport(): number {
    return Math.max(1, this.#scroller.clientHeight - (this.#table.firstElementChild as HTMLElement).offsetHeight);
  }

  get #height(): number {
    return Math.min(MAX_HEIGHT, this.#count * this.#rowHeight);
  }

  /** The largest first row. */
  get #lastTop(): number {
    return Math.max(0, this.#count - this.#viewport / this.#rowHeight);
  }

  /** Pixels of scrolling for each row: its height, or less if the table is too long. */
  get #scale(): number {
    return this.#lastTop === 0 ? this.#rowHeight : (this.#height - this.#viewport) / this.#lastTop;
  }

  #measure(): void {
    const height = Number.parseFloat(getComputedStyle(this.#table).getPropertyValue('--row-height'));
    if (height > 0) this.#rowHeight = height;
    this.#scrollTo(this.#top);
  }

  #scrollTo(top: number): void {
    this.#top = Math.max(0, Math.min(this.#lastTop, top));
    this.#space.style.height = `${this.#height}px`;
    this.#scroller.scrollTop = this.#top * this.#scale;
    this.#scrolledTo = this.#scroller.scrollTop;
    this.#draw();
  }

  #onScroll(): void {
    const { scrollTop } = this.#scroller;
    if (Math.abs(scrollTop - this.#scrolledTo) >= 1) this.#top = Math.min(this.#lastTop, scrollTop / this.#scale);
    this.#scrolledTo = scrollTop;
    this.#draw();
  }

  #onKey(event: KeyboardEvent): void {
    if (event.target !== this.#scroller) return;
    const page = Math.max(1, Math.floor(this.#viewport / this.#rowHeight) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, ' ': page };
    const step = steps[event.key];
    const top = step === undefined ? { Home: 0, End: this.#lastTop }[event.key] : this.#top + step;
    if (top === undefined) return;
    event.preventDefault();
    this.#scrollTo(top);
  }

  #onWheel(event: WheelEvent): void {
    // A table of its true height is scrolled by the browser.
    if (this.#scale >= this.#rowHeight * 0.999 || event.ctrlKey) return;
    const top = this.#top + event.deltaY / this.#rowHeight;
    if (top <= 0 || top >= this.#lastTop) return;
    event.preventDefault();
    this.#scrollTo(top);
  }

  #draw(): void {
    const first = Math.max(0, Math.floor(this.#top) - EXTRA_ROWS);
    const seen = Math.ceil(this.#viewport / this.#rowHeight);
    const end = Math.min(this.#count, Math.ceil(this.#top) + seen + EXTRA_ROWS);
    const rows = Array.from({ length: end - first }, (_, index) => this.#row(first + index));
    this.#space.innerHTML = html`${rows}`.text;
    for (const [index, row] of [...this.#space.children].entries()) {
      const top = this.#scroller.scrollTop + (first + index - this.#top) * this.#rowHeight;
      (row as HTMLElement).style.top = `${top}px`;
    }
  }

  #row(at: number): Html {
    const block = Math.floor(at / ROWS_PER_BLOCK);
    const content = this.#blocks.get(block)?.[at % ROWS_PER_BLOCK];
    const row = (cells: Html[], more = ''): Html =>
      html`<div role="row" aria-rowindex="${at + 2}" class="row-line${more}">${cells}</div>`;
    if (content === undefined) {
      this.#ask(block);
      return row([cell('line', '…'), cell('address', ''), cell('country', ''), cell('union', '')]);
    }
    const { line, text, result } = content;
    const isLocated = result?.country_code != null;
    const union = !isLocated ? '' : result.is_eu ? 'yes' : 'no';
    const cells = [
      ...[cell('line', numberText(line)), cell('address', html`<code>${text}</code>`)],
      ...[cell('country', countryOf(content)), cell('union', union)],
    ];
    if (result?.asn !== undefined)
      cells.push(cell('network', result.asn === null ? '' : `AS${result.asn} ${result.as_name ?? ''}`));
    return row(cells, isLocated ? '' : ' unlocated');
  }
}
