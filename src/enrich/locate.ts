/** Finds where the addresses of records are, in any format that is enriched: those that are looked up, and in text all. */
import { ENRICH_CHUNK_BYTES } from '../limits.js';
import { ChunkRunner } from './chunk-runner.js';
import { emptyCounts } from './counts.js';
import type { JsonDocument } from './formats/document.js';
import type { Chunk, ChunkBuffer } from './input/chunk-buffer.js';
import * as abi from './kernel/abi.js';
import { Slot } from './kernel/kernel.js';
import { layOut } from './kernel/layout.js';
import { kernelModule } from './kernel/module.js';
import { type EnrichOptions, maxRecordBytes } from './options.js';
import type { EnrichRanges } from './ranges.js';

/** An address of a record, as a reader of the kernel has found it. */
export interface LocatedAddress {
  /** Offsets in the input; the text may have escapes of its format. */
  from: number;
  to: number;
  /** A `ROLE_…` code of kernel/abi.ts: in text that of its label or place, otherwise `ROLE_UNNAMED`. */
  role: number;
  /** Whether it is looked up. */
  counts: boolean;
}

/** A record that is not blank. */
export interface LocatedRecord {
  /** Offset of its first byte in the input, and the number of the line that has it, from 1. */
  from: number;
  line: number;
  isInvalid: boolean;
  addresses: LocatedAddress[];
}

/** Receives the records of a part of the input, which begins at an offset; the bytes are valid until it returns. */
export type RecordsListener = (records: LocatedRecord[], bytes: Buffer, offset: number) => void;

const NEWLINE = 10;

export interface LocatorSettings {
  /** The class that reads JSON documents, if the input is one. */
  documents?: typeof JsonDocument | undefined;
  /** Sizes in bytes. */
  chunkBytes?: number;
  maxLineBytes?: number;
}

export class AddressLocator {
  readonly #runner: ChunkRunner;
  readonly #slot: Slot;
  readonly #buffer: ChunkBuffer;
  readonly #onRecords: RecordsListener;
  /** Bytes before the chunk; newlines before the bytes of it that are counted. */
  #offset = 0;
  #newlines = 0;
  #counted = 0;
  #endsInLine = false;

  /** @param file decides which address counts if several of a record could; see public-ranges.ts */
  constructor(file: EnrichRanges, options: EnrichOptions, onRecords: RecordsListener, settings: LocatorSettings = {}) {
    const { documents, chunkBytes = ENRICH_CHUNK_BYTES, maxLineBytes = maxRecordBytes(options) } = settings;
    const locating: EnrichOptions = { ...options, add: [], schema: undefined, query: undefined, locates: true };
    const layout = layOut({
      file,
      options: locating,
      threadCount: 1,
      slotCount: 1,
      chunkBytes: Math.min(chunkBytes, maxLineBytes),
      maxLineBytes,
      keepsRejects: false,
    });
    this.#runner = new ChunkRunner({
      layout,
      module: kernelModule(layout),
      options: locating,
      maxRecordBytes: maxLineBytes,
      counts: emptyCounts(),
      documents,
    });
    this.#slot = new Slot(layout, layout.slots[0]!);
    this.#buffer = this.#runner.createBuffer(this.#slot);
    this.#onRecords = onRecords;
    this.start();
  }

  /** Starts an input. */
  start(name = 'the input'): void {
    this.#buffer.start(name);
    this.#runner.forgetHeader();
    this.#runner.startReading(name);
    this.#runner.startResults(name);
    this.#offset = 0;
    this.#newlines = 0;
    this.#endsInLine = false;
  }

  /** Lines so far. */
  get lines(): number {
    return this.#newlines + (this.#endsInLine ? 1 : 0);
  }

  /** Adds bytes. @throws AtlasError for a table or document that cannot be read */
  write(bytes: Uint8Array): void {
    this.#buffer.addAll(bytes, (chunk) => this.#process(chunk));
  }

  /** Ends the input. Throws as `write` does. */
  end(): void {
    this.#process(this.#buffer.end());
  }

  #process(first: Chunk | undefined): void {
    for (let chunk = first; chunk !== undefined; chunk = this.#buffer.next()) {
      const reachedEnd = !this.#runner.prepare(chunk) || this.#runner.run(chunk);
      for (const { output } of this.#runner.results(chunk, reachedEnd)) this.#emit(chunk, output);
      const bytes = chunk.slot.input.subarray(0, chunk.length);
      this.#newlines += newlinesIn(bytes, this.#counted);
      this.#endsInLine = bytes.at(-1) !== NEWLINE;
      this.#offset += chunk.length;
      this.#counted = 0;
      if (this.#buffer.needsSlot(chunk)) this.#buffer.useSlot(this.#slot);
    }
  }

  #emit({ slot, length }: Chunk, output: Uint8Array): void {
    const records: LocatedRecord[] = [];
    const view = new DataView(output.buffer, output.byteOffset, output.length);
    const place = (at: number): number => view.getUint32(at, true) - slot.place.input;
    for (let at = 0; at < output.length; at += abi.LOCATED_BYTES) {
      const start = place(at + abi.LOCATED_RECORD);
      const flags = view.getUint8(at + abi.LOCATED_FLAGS);
      if (records.at(-1)?.from !== this.#offset + start) {
        this.#newlines += newlinesIn(slot.input.subarray(0, start), this.#counted);
        this.#counted = Math.max(this.#counted, start);
        const isInvalid = (flags & abi.LOCATED_IS_INVALID) !== 0;
        records.push({ from: this.#offset + start, line: this.#newlines + 1, isInvalid, addresses: [] });
      }
      const [from, to] = [place(at + abi.LOCATED_FROM), place(at + abi.LOCATED_TO)];
      if (from === to) continue;
      records.at(-1)!.addresses.push({
        from: this.#offset + from,
        to: this.#offset + to,
        role: view.getUint8(at + abi.LOCATED_ROLE),
        counts: (flags & abi.LOCATED_COUNTS) !== 0,
      });
    }
    if (records.length > 0) this.#onRecords(records, slot.input.subarray(0, length), this.#offset);
  }
}

/** Returns the number of newlines in bytes from an offset on. */
function newlinesIn(bytes: Uint8Array, from: number): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE, from); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}
