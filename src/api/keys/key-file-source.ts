/** Where a file of keys comes from: a path or a URL that is asked again and again. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { fetch } from 'undici';
import { AtlasError } from '../../errors.js';
import { KEY_FILE_TIMEOUT_MS, MAX_KEY_FILE_BYTES } from '../../limits.js';
import { networkReason, proxyAgent } from '../../network.js';

/** Bytes of a file that are read at a time. */
const READ_BYTES = 1_048_576;

function tooLarge(source: string): AtlasError {
  return new AtlasError('E_BAD_INPUT', `${source} is larger than ${MAX_KEY_FILE_BYTES} bytes; name another`);
}

/** Returns a URL without user and password, for messages. */
function withoutCredentials(url: string): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return shown.href;
}

export class KeyFileSource {
  readonly #path: string;
  readonly #isUrl: boolean;
  readonly #env: NodeJS.ProcessEnv;
  /** How messages name it. */
  readonly #name: string;
  /** What identifies the content that was read last, and of the content that {@link keep} was called for. */
  #read = '';
  #kept = '';

  /**
   * @param source a path, or a URL of http or https; user and password in it are sent as HTTP Basic authentication
   * @param env environment, for the proxy variables
   */
  constructor(source: string, env: NodeJS.ProcessEnv = process.env) {
    this.#env = env;
    this.#isUrl = URL.canParse(source) && /^https?:$/.test(new URL(source).protocol);
    this.#path = source;
    this.#name = this.#isUrl ? withoutCredentials(source) : source;
  }

  /**
   * Returns the content, or undefined if it is the one that {@link keep} was called for.
   *
   * @throws AtlasError E_FETCH if it cannot be read, E_BAD_INPUT if it is too large
   */
  async read(): Promise<Buffer | undefined> {
    try {
      return this.#isUrl ? await this.#fetch() : this.#readFile();
    } catch (error) {
      if (error instanceof AtlasError) throw error;
      throw new AtlasError('E_FETCH', `${this.#name} cannot be read: ${networkReason(error)}; check its address`, {
        cause: error,
      });
    }
  }

  /** Notes that the content that was read last was used, so that it need not be read again. */
  keep(): void {
    this.#kept = this.#read;
  }

  /** Reads a file, which may be a pipe or a device: its size says nothing about these. */
  #readFile(): Buffer | undefined {
    const fd = openSync(this.#path, 'r');
    try {
      const { size, mtimeMs, ino } = fstatSync(fd);
      this.#read = `${size} ${mtimeMs} ${ino}`;
      if (this.#read === this.#kept) return undefined;
      const pieces: Buffer[] = [];
      for (let total = 0; ; ) {
        const piece = Buffer.alloc(READ_BYTES);
        const bytes = readSync(fd, piece);
        if (bytes === 0) return Buffer.concat(pieces);
        total += bytes;
        if (total > MAX_KEY_FILE_BYTES) throw tooLarge(this.#name);
        pieces.push(piece.subarray(0, bytes));
      }
    } finally {
      closeSync(fd);
    }
  }

  async #fetch(): Promise<Buffer | undefined> {
    const url = new URL(this.#path);
    const headers: Record<string, string> = this.#kept === '' ? {} : { 'if-none-match': this.#kept };
    if (url.username !== '' || url.password !== '') {
      const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
      headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    }
    const dispatcher = proxyAgent(this.#env);
    try {
      const signal = AbortSignal.timeout(KEY_FILE_TIMEOUT_MS);
      const response = await fetch(this.#name, { headers, redirect: 'error', signal, dispatcher });
      if (response.status === 304) return undefined;
      if (response.status !== 200)
        throw new AtlasError('E_FETCH', `${this.#name} answers with status ${response.status}; check its address`);
      const pieces: Uint8Array[] = [];
      let size = 0;
      for await (const piece of response.body ?? []) {
        size += piece.length;
        if (size > MAX_KEY_FILE_BYTES) throw tooLarge(this.#name);
        pieces.push(piece);
      }
      this.#read = response.headers.get('etag') ?? '';
      return Buffer.concat(pieces);
    } finally {
      await dispatcher.destroy();
    }
  }
}
