/** The world map: colors countries by level, tells about the one under the pointer or the focus, and zooms. */
import type { CountryNames } from '../country/names.js';
import { html } from '../html.js';
import { numberText } from './dom.js';
import { type CountryCount, LEVELS, levelOf, levelStarts } from './results.js';

/** A part of the map, in units of its view box. */
interface Region {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** What the map says about a country. */
interface Shape {
  element: SVGGraphicsElement;
  name: string;
  count: number;
}

/** Countries at the corners of Europe. */
const EUROPE = ['PT', 'IE', 'FI', 'GR', 'RO'];

/** The smallest region around a country: Europe is about 300 wide. */
const SMALLEST_REGION = 420;
/** The region around a country is so many times as large as the country. */
const MARGIN = 2.2;
const ZOOM_STEP = 1.6;
/** Width of the region of the closest zoom. */
const CLOSEST = 60;
/** Radius of the dots of small countries, and their largest share of the width of the region. */
const DOT_RADIUS = 5;
const DOT_SHARE = 0.012;
/** Movement in pixels from which a press of the pointer moves the map. */
const DRAG_PX = 4;

/** What a map has besides the drawing: the buttons, what is pointed at, and the legend. */
const CONTROLS = html`<div class="zoom" role="group" aria-label="Part of the map"><button type="button" aria-label="Closer">+</button><button type="button" aria-label="Farther">−</button><button type="button">Europe</button><button type="button">World</button></div><p class="map-label" role="status"></p><ul class="legend" aria-label="Addresses by color"></ul>`;

export interface MapOptions {
  /** The names to show, from the English ones of the drawing. */
  nameOf: CountryNames;
  /** For assistive technology. */
  label: string;
  /** Called with the code of a country that was clicked. Without it, countries cannot be clicked. */
  onPick?: (code: string) => void;
}

export class WorldMap {
  readonly #svg: SVGSVGElement;
  readonly #label: HTMLElement;
  readonly #legend: HTMLElement;
  readonly #onPick: ((code: string) => void) | undefined;
  /** By country code, in the order of the document. */
  readonly #shapes = new Map<string, Shape>();
  readonly #dots: SVGCircleElement[];
  readonly #world: Region;
  /** What is to be seen; the view box has the proportions of the element. */
  #region: Region;
  #codes: string[];
  #focused: string;
  #wasDragged = false;

  /**
   * @param container receives the map
   * @param drawing elements with the attribute `data-country`, each with a title; it is copied
   */
  constructor(container: HTMLElement, drawing: SVGSVGElement, { label, nameOf, onPick }: MapOptions) {
    const svg = drawing.cloneNode(true) as SVGSVGElement;
    this.#svg = svg;
    this.#onPick = onPick;
    container.innerHTML = CONTROLS.text;
    const [zoom, shown, legend] = container.children as unknown as HTMLElement[];
    this.#label = shown!;
    this.#legend = legend!;
    const { x, y, width, height } = drawing.viewBox.baseVal;
    this.#world = { x, y, width, height };
    this.#region = this.#world;
    for (const shape of svg.querySelectorAll<SVGGraphicsElement>('[data-country]')) {
      const title = shape.querySelector('title');
      const code = shape.dataset.country!;
      const name = nameOf(code, title?.textContent ?? code);
      // A title would be shown as a tooltip of the browser besides the label.
      title?.remove();
      shape.setAttribute('role', onPick === undefined ? 'img' : 'button');
      this.#shapes.set(code, { element: shape, name, count: 0 });
    }
    this.#dots = [...svg.querySelectorAll('circle')];
    this.#codes = [...this.#shapes.keys()].sort((a, b) => (this.#name(a) < this.#name(b) ? -1 : 1));
    this.#focused = this.#codes[0]!;
    svg.setAttribute('role', 'group');
    svg.setAttribute('aria-label', `${label}. The arrow keys go from country to country.`);
    container.classList.toggle('pickable', onPick !== undefined);
    container.prepend(svg);
    const actions = [
      () => this.#zoomBy(1 / ZOOM_STEP),
      () => this.#zoomBy(ZOOM_STEP),
      () => this.zoomTo(EUROPE),
      () => this.zoomTo([]),
    ];
    for (const [index, action] of actions.entries()) zoom!.children[index]!.addEventListener('click', action);
    this.#listen();
    this.show([]);
    new ResizeObserver(() => this.#fit()).observe(svg);
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
    for (const [code, { element: shape, count }] of this.#shapes) {
      shape.dataset.level = count === 0 ? '0' : String(levelOf(count, most));
      shape.setAttribute('aria-label', this.#text(code));
      shape.setAttribute('tabindex', '-1');
    }
    // Countries with a result come first for the keyboard.
    this.#codes.sort((a, b) => this.#count(b) - this.#count(a) || (this.#name(a) < this.#name(b) ? -1 : 1));
    this.#focused = this.#codes[0]!;
    this.#shapes.get(this.#focused)!.element.setAttribute('tabindex', '0');
    this.#showLegend(most);
  }

  /** Shows the region around some countries; the world if there is none. */
  zoomTo(codes: readonly string[]): void {
    const boxes = codes.flatMap((code) => this.#shapes.get(code)?.element.getBBox() ?? []);
    if (boxes.length === 0) {
      this.#region = this.#world;
    } else {
      const left = Math.min(...boxes.map(({ x }) => x));
      const top = Math.min(...boxes.map(({ y }) => y));
      const right = Math.max(...boxes.map(({ x, width }) => x + width));
      const bottom = Math.max(...boxes.map(({ y, height }) => y + height));
      const margin = codes.length > 1 ? 1 : MARGIN;
      const width = Math.max(SMALLEST_REGION, margin * (right - left));
      const height = Math.max(SMALLEST_REGION / 2, margin * (bottom - top));
      this.#region = { x: (left + right - width) / 2, y: (top + bottom - height) / 2, width, height };
    }
    this.#fit();
  }

  #name(code: string): string {
    return this.#shapes.get(code)!.name;
  }

  #count(code: string): number {
    return this.#shapes.get(code)!.count;
  }

  #text(code: string): string {
    const { name, count } = this.#shapes.get(code)!;
    return count === 0 || this.#onPick === undefined ? name : `${name}: ${numberText(count)}`;
  }

  #showLegend(most: number): void {
    const starts = most === 0 || this.#onPick === undefined ? [] : levelStarts(most);
    this.#legend.hidden = starts.length === 0;
    const items = starts.map(({ level, from }, index) => {
      const to = (starts[index + 1]?.from ?? most + 1) - 1;
      const text = from === to ? numberText(from) : `${numberText(from)} to ${numberText(to)}`;
      return html`<li data-level="${Math.min(level, LEVELS)}">${text}</li>`;
    });
    this.#legend.innerHTML = html`${items}`.text;
  }

  #zoomBy(factor: number): void {
    const { x, y, width, height } = this.#region;
    const limited = Math.max(CLOSEST / width, Math.min(this.#world.width / width, factor));
    const [wide, high] = [width * limited, height * limited];
    this.#region = { x: x + (width - wide) / 2, y: y + (height - high) / 2, width: wide, height: high };
    this.#fit();
  }

  /** Sets the view box: the region, enlarged to the proportions of the element, and within the world where that is larger. */
  #fit(): void {
    const { clientWidth, clientHeight } = this.#svg;
    if (clientWidth === 0 || clientHeight === 0) return;
    const shape = clientWidth / clientHeight;
    const region = this.#region;
    const width = Math.max(region.width, region.height * shape);
    const height = width / shape;
    const within = (from: number, size: number, least: number, most: number): number =>
      size >= most ? least + (most - size) / 2 : Math.max(least, Math.min(least + most - size, from));
    const x = within(region.x + (region.width - width) / 2, width, this.#world.x, this.#world.width);
    const y = within(region.y + (region.height - height) / 2, height, this.#world.y, this.#world.height);
    this.#region = { x, y, width, height };
    this.#svg.setAttribute('viewBox', [x, y, width, height].map((value) => value.toFixed(1)).join(' '));
    const radius = Math.min(DOT_RADIUS, DOT_SHARE * width);
    for (const dot of this.#dots) dot.setAttribute('r', radius.toFixed(2));
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
    const pick = (event: Event): void => {
      const code = codeOf(event);
      if (code !== undefined) this.#onPick?.(code);
    };
    this.#svg.addEventListener('pointerover', tell);
    this.#svg.addEventListener('focusin', tell);
    this.#svg.addEventListener('pointerleave', clear);
    this.#svg.addEventListener('focusout', clear);
    this.#svg.addEventListener('click', (event) => {
      if (!this.#wasDragged) pick(event);
    });
    this.#svg.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        pick(event);
        return;
      }
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const index = this.#codes.indexOf(this.#focused);
      const last = this.#codes.length - 1;
      const wanted = step !== undefined ? index + step : { Home: 0, End: last }[event.key];
      if (wanted === undefined) return;
      event.preventDefault();
      this.#focus(this.#codes[Math.max(0, Math.min(last, wanted))]!);
    });
    this.#listenToDrags();
  }

  #listenToDrags(): void {
    let last: PointerEvent | undefined;
    this.#svg.addEventListener('pointerdown', (event) => {
      last = event;
      this.#wasDragged = false;
    });
    this.#svg.addEventListener('pointermove', (event) => {
      if (last === undefined || event.buttons === 0) return;
      const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
      if (!this.#wasDragged && Math.hypot(dx, dy) < DRAG_PX) return;
      this.#wasDragged = true;
      const scale = this.#region.width / this.#svg.clientWidth;
      this.#region = { ...this.#region, x: this.#region.x - dx * scale, y: this.#region.y - dy * scale };
      last = event;
      this.#fit();
    });
    this.#svg.addEventListener('pointerup', () => {
      last = undefined;
    });
  }

  /** Moves the focus. One country can be reached by Tab, the others by the arrow keys. */
  #focus(code: string): void {
    this.#shapes.get(this.#focused)!.element.setAttribute('tabindex', '-1');
    const { element: shape } = this.#shapes.get(code)!;
    shape.setAttribute('tabindex', '0');
    this.#showInRegion(shape);
    shape.focus({ preventScroll: true });
    this.#focused = code;
  }

  /** Moves the region if a country is outside of it. */
  #showInRegion(shape: SVGGraphicsElement): void {
    const box = shape.getBBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const { x: left, y: top, width, height } = this.#region;
    if (x >= left && x <= left + width && y >= top && y <= top + height) return;
    this.#region = { x: x - width / 2, y: y - height / 2, width, height };
    this.#fit();
  }
}

/** Loads the drawing. @param url of the SVG @returns undefined if it cannot be loaded */
export async function loadDrawing(url: string): Promise<SVGSVGElement | undefined> {
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
