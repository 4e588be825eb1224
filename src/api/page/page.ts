/** The page for people: its routes besides those of the API, and the files that it loads. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { namedLanguage } from '../../country/names.js';
import { AtlasError } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { BaseUrls } from '../openapi.js';
import type { Responder } from '../responses.js';

const ASSETS_DIR = 'dist/page/assets';
const HTML_TYPE = 'text/html; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** The types of the files. */
const FILE_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/** Most languages of a request that are looked at. */
const MAX_LANGUAGES = 10;

/** Returns what a header of what a client accepts lists, in lower case, the most wanted first (RFC 9110 section 12.4.2). */
function acceptedValues(header: string | string[] | undefined): string[] {
  const weighted = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((part) => {
      const [name = '', ...parameters] = part.split(';').map((text) => text.trim());
      const quality = parameters.find((text) => text.startsWith('q='))?.slice(2);
      return { name, weight: Number(quality ?? 1) };
    });
  return weighted
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .map(({ name }) => name);
}

/** Returns the language of the names of countries for a visitor: the first accepted one that has names here, or English. */
export function pageLanguage(acceptLanguage: string | undefined): string {
  for (const tag of acceptedValues(acceptLanguage).slice(0, MAX_LANGUAGES)) {
    const language = namedLanguage(tag);
    if (language !== undefined) return /^en\b/.test(language) ? 'en' : language;
  }
  return 'en';
}

/** Where the page is, for clients; and which single-stack servers it may ask. */
export interface PageSettings {
  /** URLs of servers that have only one family of addresses. */
  ipv4Url: string | undefined;
  ipv6Url: string | undefined;
  /** Whether visitors can make keys for themselves. */
  signUp: boolean;
  /** Which visitors may look up addresses without a key of their own: `loopback`, those on the server's own machine. */
  keyless: 'everyone' | 'loopback' | 'nobody';
  /** Whether anyone may load the compact form of the release. */
  publicDb: boolean;
}

/** Returns the Content-Security-Policy. @param others origins that scripts may also send requests to */
export function contentSecurityPolicy(others: readonly string[]): string {
  return [
    "default-src 'none'",
    // The kernel of the page's worker is WebAssembly. No text becomes JavaScript.
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src 'self'",
    "img-src 'self'",
    ['connect-src', "'self'", ...others].join(' '),
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Returns the folder of the page's files, relative to the page. It is named by the hash of their content. */
function assetsPath(): string {
  try {
    return `page/${readdirSync(packageFile(ASSETS_DIR))[0]!}`;
  } catch (error) {
    throw new AtlasError('E_INSTALL', `${packageFile(ASSETS_DIR)} is missing; install ipatlas again`, { cause: error });
  }
}

/** Whether a client that sends this `Accept` wants HTML. Command-line clients accept anything, and get plain text. */
export function wantsHtml(accept: string | undefined): boolean {
  return accept !== undefined && /\b(text\/html|application\/xhtml\+xml)\b/i.test(accept);
}

/** Returns the base URL of a service as a request reached it. Only for texts: proxies may have changed it. */
export function requestedUrl({ headers, raw }: FastifyRequest): string {
  const { host } = headers;
  const scheme = 'encrypted' in raw.socket ? 'https' : 'http';
  return host !== undefined && /^[\w.:[\]-]{1,255}$/.test(host) ? `${scheme}://${host}` : 'http://localhost:8080';
}

/** Returns what a request target asks for: an address, and a day, which is empty for now. */
export function askedLookup(target: string): { ip: string; at: string } | undefined {
  const query = new URLSearchParams(/\?.*/.exec(target)?.[0]);
  const ip = query.get('ip')?.trim();
  return ip === undefined ? undefined : { ip, at: query.get('at') ?? '' };
}

export class Page {
  readonly #responder: Responder;
  readonly #policy: string;
  #assets: string | undefined;

  constructor(settings: PageSettings & { baseUrls: BaseUrls }, responder: Responder) {
    this.#responder = responder;
    const { ipv4Url, ipv6Url, baseUrls } = settings;
    const others = [ipv4Url, ipv6Url, baseUrls.default, baseUrls.eu].filter((url) => url !== undefined);
    this.#policy = contentSecurityPolicy([...new Set(others.map((url) => new URL(url).origin))]);
  }

  get #headers(): string[] {
    return [
      ...['content-security-policy', this.#policy, 'x-content-type-options', 'nosniff'],
      ...['referrer-policy', 'same-origin', 'cache-control', 'no-store', 'vary', 'accept, accept-language'],
    ];
  }

  /** Adds the route of the files. Each file stays in memory after its first request. */
  addFiles(app: FastifyInstance, isClosing: () => boolean): void {
    const folder = packageFile(ASSETS_DIR);
    const names = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }));
    const contents = new Map<string, Buffer>();
    app.get('/page/*', (request, reply) => {
      const { '*': name } = request.params as { '*': string };
      const type = FILE_TYPES[extname(name)];
      if (type === undefined || !names.has(`${name}.gz`)) {
        this.#responder.error(reply, 'not_found');
        return;
      }
      let content = contents.get(name);
      if (content === undefined) {
        content = readFileSync(join(folder, `${name}.gz`));
        contents.set(name, content);
      }
      // Every browser takes it, and command-line tools do not ask for these files.
      const isCompressed = acceptedValues(request.headers['accept-encoding']).includes('gzip');
      reply.headers({
        'content-type': type,
        'content-security-policy': this.#policy,
        'x-content-type-options': 'nosniff',
        // The name of the folder is a hash of the content.
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'accept-encoding',
        ...(isCompressed && { 'content-encoding': 'gzip' }),
        ...(isClosing() && { connection: 'close' }),
      });
      reply.send(isCompressed ? content : gunzipSync(content));
    });
  }

  /** The folder of the page's files, relative to the page. */
  get assets(): string {
    this.#assets ??= assetsPath();
    return this.#assets;
  }

  sendHtml(reply: FastifyReply, body: string, status = 200, headers: readonly string[] = []): undefined {
    this.#responder.document(reply, status, HTML_TYPE, body, [...this.#headers, ...headers]);
  }

  sendText(reply: FastifyReply, body: string): undefined {
    this.#responder.document(reply, 200, TEXT_TYPE, body, this.#headers);
  }
}
