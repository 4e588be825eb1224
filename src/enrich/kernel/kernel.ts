/** The kernel, loaded: a WebAssembly module compiled from assembly/, working in a memory that was laid out for it. */
import { readFileSync } from 'node:fs';
import { AtlasError, messageOf } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { EnrichCounts } from '../counts.js';
import { type KernelLayout, SLOT_FIELDS, type SlotPlace } from './layout.js';

/** What the module exports; addresses are bytes from the start of its memory. */
interface Exports {
  begin(config: number, areas: number): void;
  run(slot: number): number;
  recordOf(from: number, to: number): number;
}

/** The same module twice, since a module says whether its memory is shared. */
const MODULE_FILES = {
  shared: 'dist/src/enrich/kernel/kernel-shared.wasm',
  alone: 'dist/src/enrich/kernel/kernel-alone.wasm',
} as const;

const compiled: { -readonly [Kind in keyof typeof MODULE_FILES]?: WebAssembly.Module } = {};

/**
 * The compiled module for a memory; can be sent to another thread.
 *
 * @throws AtlasError E_FAULT where the package was not built
 */
export function kernelModule({ memory }: KernelLayout): WebAssembly.Module {
  const kind = memory.buffer instanceof SharedArrayBuffer ? 'shared' : 'alone';
  if (compiled[kind] === undefined) {
    const path = packageFile(MODULE_FILES[kind]);
    try {
      compiled[kind] = new WebAssembly.Module(readFileSync(path));
    } catch (error) {
      throw new AtlasError('E_FAULT', `${path} cannot be loaded: ${messageOf(error)}; run "npm run build"`, {
        cause: error,
      });
    }
  }
  return compiled[kind];
}

const FIELD = Object.fromEntries(SLOT_FIELDS.map((name, index) => [name, index])) as Record<
  (typeof SLOT_FIELDS)[number],
  number
>;

/** A slot as JavaScript sees it: its areas and its numbers. */
export class Slot {
  readonly place: SlotPlace;
  /** Where input goes. */
  readonly input: Buffer;
  readonly #fields: Uint32Array;
  readonly #all: Uint8Array;

  constructor(layout: KernelLayout, place: SlotPlace) {
    this.place = place;
    this.#all = new Uint8Array(layout.memory.buffer);
    this.#fields = new Uint32Array(layout.memory.buffer, place.head, SLOT_FIELDS.length);
    this.input = Buffer.from(layout.memory.buffer, place.input, place.inputBytes);
  }

  /**
   * Makes ready for the lines that stand in `input`.
   *
   * @param length bytes of input, whole lines; only the last of all may lack its newline
   * @param skip bytes at its beginning (a byte order mark) that are passed on and belong to no line
   */
  begin(length: number, skip: number): void {
    const { place } = this;
    const { input, output } = place;
    const fields = this.#fields;
    fields[FIELD.copied] = input;
    fields[FIELD.next] = input + skip;
    fields[FIELD.inputEnd] = input + length;
    fields[FIELD.outputEnd] = output + place.outputBytes;
    this.clear();
  }

  /** Makes ready for the rest of the same lines, what was put out having been taken. */
  clear(): void {
    this.#fields[FIELD.output] = this.place.output;
    this.#fields[FIELD.rejects] = this.place.rejects;
  }

  /** What the last run put out; good until the next. */
  get output(): Uint8Array {
    return this.#all.subarray(this.place.output, this.#fields[FIELD.output]);
  }

  /** The lines that the last run refused. */
  get rejects(): Uint8Array {
    return this.#all.subarray(this.place.rejects, this.#fields[FIELD.rejects]);
  }

  /** Whether the last run stopped at a line that the policy fails on. */
  get refused(): boolean {
    return this.#fields[FIELD.refused] !== 0;
  }

  /** Lines that the last run dealt with. */
  get lines(): number {
    return this.#fields[FIELD.lines]!;
  }

  /** Adds what the last run counted. */
  addCountsTo(counts: EnrichCounts): void {
    const fields = this.#fields;
    counts.lines += fields[FIELD.lines]!;
    counts.found += fields[FIELD.found_count]!;
    counts.no_country += fields[FIELD.no_country]!;
    counts.invalid_address += fields[FIELD.invalid_address]!;
    counts.missing_field += fields[FIELD.missing_field]!;
    counts.invalid_line += fields[FIELD.invalid_line]!;
  }
}

/** One thread's instance. */
export class Kernel {
  readonly #exports: Exports;
  readonly #memory: WebAssembly.Memory;

  /**
   * The first one in a memory makes the tables there; no other thread may begin before it has.
   *
   * @param thread the number of the thread that it works for, whose working areas it takes
   */
  constructor(layout: KernelLayout, thread = 0, module: WebAssembly.Module = kernelModule(layout)) {
    const instance = new WebAssembly.Instance(module, { env: { memory: layout.memory } });
    this.#exports = instance.exports as unknown as Exports;
    this.#exports.begin(layout.config, layout.threads[thread]!);
    this.#memory = layout.memory;
  }

  /**
   * Works through the lines of a slot that was made ready.
   *
   * @returns whether all were dealt with. Where not, its output is full (take it, {@link Slot.clear}, run again), or a line
   *   was refused
   */
  run(slot: SlotPlace): boolean {
    return this.#exports.run(slot.head) !== 0;
  }

  /**
   * The number of the record that answers an address, or -1 where the text is none. Tests hold it against the library's.
   *
   * @param slot whose input area receives the text
   */
  recordOf(slot: SlotPlace, text: Uint8Array): number {
    new Uint8Array(this.#memory.buffer).set(text, slot.input);
    return this.#exports.recordOf(slot.input, slot.input + text.length);
  }
}
