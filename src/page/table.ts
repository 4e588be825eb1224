/** A table of any number of rows, of which only those are drawn that can be seen. */
import { element, numberText } from './dom.js';
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

function cell(name: string, ...children: (Node | string)[]): HTMLElement {
  const made = element('div', ...children);
  made.setAttribute('role', 'cell');
  made.className = name;
  return made;
}

/** Returns the country of a row as text. */
function countryOf({ result, reason }: Row): string {
  if (result === undefined) return 'not an address';
  return result.country ?? (reason === undefined ? 'no country' : `no country: ${reason.replaceAll('-', ' ')}`);
}

export class RowTable {
  readonly #events: TableEvents;
  readonly #scroller = element('div');
  readonly #table = element('div');
  readonly #space = element('div');
  readonly #headers = new Map<SortColumn, HTMLElement>();
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
    this.#scroller.className = 'scroller';
    this.#scroller.tabIndex = 0;
    this.#scroller.setAttribute('role', 'region');
    this.#scroller.setAttribute('aria-label', 'Addresses, rows');
    this.#table.setAttribute('role', 'table');
    this.#table.setAttribute('aria-label', 'Addresses');
    this.#space.setAttribute('role', 'rowgroup');
    this.#space.className = 'space';
    this.#table.append(this.#header(), this.#space);
    this.#scroller.append(this.#table);
    container.replaceChildren(this.#scroller);
    this.#scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    this.#scroller.addEventListener('keydown', (event) => this.#onKey(event));
    this.#scroller.addEventListener('wheel', (event) => this.#onWheel(event), { passive: false });
    new ResizeObserver(() => this.#measure()).observe(this.#scroller);
  }

  /** Shows or hides the column of the networks. */
  showNetworks(areShown: boolean): void {
    this.#table.classList.toggle('with-networks', areShown);
    this.#headers.get('network')!.hidden = !areShown;
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

  #header(): HTMLElement {
    const row = element('div');
    row.setAttribute('role', 'row');
    row.setAttribute('aria-rowindex', '1');
    row.className = 'row-head';
    for (const [column, name] of COLUMNS) {
      const sort = element('button', name) as HTMLButtonElement;
      sort.type = 'button';
      sort.addEventListener('click', () => this.#sortBy(column));
      const header = element('div', sort);
      header.setAttribute('role', 'columnheader');
      header.className = `c-${column}`;
      this.#headers.set(column, header);
      row.append(header);
    }
    this.#markOrder();
    this.#headers.get('network')!.hidden = true;
    const group = element('div', row);
    group.setAttribute('role', 'rowgroup');
    group.className = 'heads';
    return group;
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
    for (const [column, header] of this.#headers) {
      const { column: sorted, descending } = this.#order;
      if (column === sorted) header.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
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
    const rows: HTMLElement[] = [];
    for (let at = first; at < end; at++) {
      const row = this.#row(at);
      row.style.top = `${this.#scroller.scrollTop + (at - this.#top) * this.#rowHeight}px`;
      rows.push(row);
    }
    this.#space.replaceChildren(...rows);
  }

  #row(at: number): HTMLElement {
    const block = Math.floor(at / ROWS_PER_BLOCK);
    const content = this.#blocks.get(block)?.[at % ROWS_PER_BLOCK];
    const row = element('div');
    row.setAttribute('role', 'row');
    row.setAttribute('aria-rowindex', String(at + 2));
    row.className = 'row-line';
    if (content === undefined) {
      this.#ask(block);
      row.append(cell('c-line', '…'), cell('c-address'), cell('c-country'), cell('c-union'));
      return row;
    }
    const { line, text, result } = content;
    if (result?.country_code == null) row.classList.add('unlocated');
    const union = result?.country_code == null ? '' : result.is_eu ? 'yes' : 'no';
    row.append(
      cell('c-line', numberText(line)),
      cell('c-address', element('code', text)),
      cell('c-country', countryOf(content)),
      cell(union === 'yes' ? 'c-union yes' : 'c-union', union),
    );
    if (result?.asn !== undefined)
      row.append(cell('c-network', result.asn === null ? '' : `AS${result.asn} ${result.as_name ?? ''}`));
    return row;
  }
}
