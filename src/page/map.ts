/** The world map: colors countries by level, and tells about the one under the pointer or the focus. */
import { type CountryCount, LEVELS, levelOf, levelStarts } from './results.js';

const numberText = (value: number): string => value.toLocaleString('en-US');

/** What the map says about a country. */
interface Shape {
  element: SVGElement;
  name: string;
  count: number;
}

export class WorldMap {
  readonly #svg: SVGSVGElement;
  readonly #label: HTMLElement;
  readonly #legend: HTMLElement;
  /** By country code, in the order of the document. */
  readonly #shapes = new Map<string, Shape>();
  #codes: string[];
  #focused: string;

  /**
   * @param svg elements with the attribute `data-country`, each with a title; the title becomes its label
   * @param label shows what is under the pointer
   * @param legend list that receives the steps of color
   */
  constructor(svg: SVGSVGElement, label: HTMLElement, legend: HTMLElement) {
    this.#svg = svg;
    this.#label = label;
    this.#legend = legend;
    for (const element of svg.querySelectorAll<SVGElement>('[data-country]')) {
      const title = element.querySelector('title');
      const name = title?.textContent ?? element.dataset.country!;
      // A title would be shown as a tooltip of the browser besides the label.
      title?.remove();
      element.setAttribute('role', 'img');
      this.#shapes.set(element.dataset.country!, { element, name, count: 0 });
    }
    this.#codes = [...this.#shapes.keys()].sort((a, b) => (this.#name(a) < this.#name(b) ? -1 : 1));
    this.#focused = this.#codes[0]!;
    svg.setAttribute('role', 'group');
    svg.setAttribute('aria-label', 'World map');
    svg.setAttribute('aria-describedby', 'map-help');
    this.#listen();
    this.show([]);
  }

  /** Colors the countries by their counts. */
  show(counts: readonly CountryCount[]): void {
    for (const shape of this.#shapes.values()) shape.count = 0;
    let most = 0;
    for (const { code, count } of counts) {
      const shape = code === undefined ? undefined : this.#shapes.get(code);
      if (shape === undefined) continue;
      shape.count = count;
      most = Math.max(most, count);
    }
    for (const [code, { element, count }] of this.#shapes) {
      element.dataset.level = count === 0 ? '0' : String(levelOf(count, most));
      element.setAttribute('aria-label', this.#text(code));
      element.setAttribute('tabindex', '-1');
    }
    // Countries with a result come first for the keyboard.
    this.#codes.sort((a, b) => this.#count(b) - this.#count(a) || (this.#name(a) < this.#name(b) ? -1 : 1));
    this.#focused = this.#codes[0]!;
    this.#shapes.get(this.#focused)!.element.setAttribute('tabindex', '0');
    this.#showLegend(most);
  }

  #name(code: string): string {
    return this.#shapes.get(code)!.name;
  }

  #count(code: string): number {
    return this.#shapes.get(code)!.count;
  }

  #text(code: string): string {
    const { name, count } = this.#shapes.get(code)!;
    return count === 0 ? name : `${name}: ${numberText(count)}`;
  }

  #showLegend(most: number): void {
    const starts = most === 0 ? [] : levelStarts(most);
    this.#legend.replaceChildren(
      ...starts.map(({ level, from }, index) => {
        const next = starts[index + 1];
        const to = next === undefined ? most : next.from - 1;
        const item = document.createElement('li');
        item.dataset.level = String(Math.min(level, LEVELS));
        item.textContent = from === to ? numberText(from) : `${numberText(from)} to ${numberText(to)}`;
        return item;
      }),
    );
  }

  #listen(): void {
    const codeOf = ({ target }: Event): string | undefined =>
      target instanceof SVGElement ? target.dataset.country : undefined;
    const tell = (event: Event): void => {
      const code = codeOf(event);
      if (code !== undefined) this.#label.textContent = this.#text(code);
    };
    const clear = (): void => {
      this.#label.textContent = '';
    };
    this.#svg.addEventListener('pointerover', tell);
    this.#svg.addEventListener('focusin', tell);
    this.#svg.addEventListener('pointerleave', clear);
    this.#svg.addEventListener('focusout', clear);
    this.#svg.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const index = this.#codes.indexOf(this.#focused);
      const last = this.#codes.length - 1;
      const wanted = step !== undefined ? index + step : { Home: 0, End: last }[event.key];
      if (wanted === undefined) return;
      event.preventDefault();
      this.#focus(this.#codes[Math.max(0, Math.min(last, wanted))]!);
    });
  }

  /** Moves the focus. One country can be reached by Tab, the others by the arrow keys. */
  #focus(code: string): void {
    this.#shapes.get(this.#focused)!.element.setAttribute('tabindex', '-1');
    const { element } = this.#shapes.get(code)!;
    element.setAttribute('tabindex', '0');
    element.focus();
    this.#focused = code;
  }
}

/** Loads the map. @param url of the SVG @returns undefined if it cannot be loaded */
export async function loadMap(url: string): Promise<SVGSVGElement | undefined> {
  let text: string;
  try {
    const response = await fetch(url);
    if (!response.ok) return undefined;
    text = await response.text();
  } catch {
    // The server cannot be reached; the page works without the map.
    return undefined;
  }
  const { documentElement } = new DOMParser().parseFromString(text, 'image/svg+xml');
  return document.importNode(documentElement as unknown as SVGSVGElement, true);
}
