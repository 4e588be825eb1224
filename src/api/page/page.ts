/** The page for people: its routes besides those of the API, and the files that it loads. */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AtlasError } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { BaseUrls } from '../openapi.js';
import type { Responder } from '../responses.js';
import { docsHtml, type PageContent, pageHtml, pageText } from './page-html.js';

const ASSETS_DIR = 'dist/page/assets';
const HTML_TYPE = 'text/html; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Where the page is, for clients; and which single-stack servers it may ask. */
export interface PageSettings {
  ipv4Url: string | undefined;
  ipv6Url: string | undefined;
  signUp: boolean;
  /** Whether visitors may look up addresses without a key of their own. */
  keyless: boolean;
}

/** Returns the Content-Security-Policy. @param others origins that scripts may also send requests to */
export function contentSecurityPolicy(others: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // Swagger UI has icons as data: URLs in its style sheet.
    "img-src 'self' data:",
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

/** Returns the query parameter `ip` of a request target. */
export function askedAddress(target: string): string | undefined {
  const query = target.indexOf('?');
  return query < 0 ? undefined : (new URLSearchParams(target.slice(query)).get('ip')?.trim() ?? undefined);
}

export class Page {
  readonly #settings: PageSettings;
  readonly #responder: Responder;
  readonly #headers: readonly string[];
  #assets: string | undefined;

  constructor(settings: PageSettings & { baseUrls: BaseUrls }, responder: Responder) {
    this.#settings = settings;
    this.#responder = responder;
    const { ipv4Url, ipv6Url, baseUrls } = settings;
    const others = [ipv4Url, ipv6Url, baseUrls.default, baseUrls.eu].filter((url) => url !== undefined);
    this.#headers = [
      'content-security-policy',
      contentSecurityPolicy([...new Set(others.map((url) => new URL(url).origin))]),
      'x-content-type-options',
      'nosniff',
      'referrer-policy',
      'same-origin',
      'cache-control',
      'no-store',
      'vary',
      'accept',
    ];
  }

  /** Adds the routes of the files. */
  addFiles(app: FastifyInstance, isClosing: () => boolean): void {
    const require = createRequire(import.meta.url);
    const swagger = join(dirname(require.resolve('@fastify/swagger-ui/package.json')), 'static');
    app.register(async (files) => {
      files.addHook('onRequest', async (_request, reply) => {
        reply.header('x-content-type-options', 'nosniff');
        reply.header('content-security-policy', this.#headers[1]);
        if (isClosing()) reply.header('connection', 'close');
      });
      await files.register(fastifyStatic, { root: swagger, prefix: '/page/swagger/', index: false, maxAge: '1d' });
      // The name of the folder is a hash of the content.
      await files.register(fastifyStatic, {
        root: packageFile(ASSETS_DIR),
        prefix: '/page/',
        index: false,
        preCompressed: true,
        immutable: true,
        maxAge: '365d',
        decorateReply: false,
      });
    });
  }

  /** Sends the page, or plain text to clients that do not ask for HTML. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    content: Omit<PageContent, 'assets' | keyof PageSettings>,
    status = 200,
    headers: readonly string[] = [],
  ): void {
    if (!wantsHtml(request.headers.accept)) {
      this.#responder.document(request, reply, status, TEXT_TYPE, pageText(content), [...this.#headers, ...headers]);
      return;
    }
    const body = pageHtml({ ...content, ...this.#settings, assets: this.#assetsPath() });
    this.#responder.document(request, reply, status, HTML_TYPE, body, [...this.#headers, ...headers]);
  }

  sendDocs(request: FastifyRequest, reply: FastifyReply): void {
    const body = docsHtml({ assets: this.#assetsPath() });
    this.#responder.document(request, reply, 200, HTML_TYPE, body, this.#headers);
  }

  #assetsPath(): string {
    this.#assets ??= assetsPath();
    return this.#assets;
  }
}
