/** The pages for people, their keys, and the readable documentation. */
import type { FastifyRequest } from 'fastify';
import type { LookupResult } from '../../database/results.js';
import { WIRE_ERRORS } from '../../errors.js';
import { INCLUDED, INVALID_ADDRESS, type Notice, RATE_USED_UP } from '../../page/answer.js';
import { isLoopbackAddress } from '../../url.js';
import { callerOf } from '../caller.js';
import { type Included, includedMembers, inLanguage } from '../include.js';
import { openApiDocument, serverUrl } from '../openapi.js';
import { dataHtml } from '../page/data-html.js';
import { developersHtml } from '../page/developers-html.js';
import { lookupHtml, pageText } from '../page/lookup-html.js';
import { askedLookup, type Page, pageLanguage, requestedUrl, wantsHtml } from '../page/page.js';
import { docsHtml, type OpenApi } from '../page/reference-html.js';
import type { Answers } from '../releases/releases.js';
import { resultOf } from '../releases/served-release.js';
import { JSON_TYPE } from '../responses.js';
import type { Context, Handler } from './context.js';

/** The web server of the RIPE NCC, in Amsterdam: an address in a member of the Union. */
const EXAMPLE_ADDRESS = '193.0.6.139';

const NETWORK_MEMBERS = includedMembers(INCLUDED) as Included;

export function pageHandlers(context: Context, page: Page) {
  const { responder } = context;
  const { releases, metrics, pageKeys, baseUrls, trustProxy, page: settings } = context.deps;

  /** Whether a visitor may look addresses up without a key. `Host` and `Origin` are what a client likes them to be. */
  function isKeyless(request: FastifyRequest): boolean {
    if (settings.keyless !== 'loopback') return settings.keyless === 'everyone';
    // A proxy on this machine that is not trusted passes on requests of anybody.
    const isProxied = trustProxy.length === 0 && request.headers['x-forwarded-for'] !== undefined;
    return !isProxied && isLoopbackAddress(callerOf(request));
  }

  /** What all pages show. */
  function contentFor(request: FastifyRequest) {
    const served = releases.current();
    return {
      ...settings,
      keyless: isKeyless(request),
      assets: page.assets,
      baseUrl: baseUrls?.default === undefined ? requestedUrl(request) : serverUrl(baseUrls.default),
      manifest: served?.database.manifest,
      changeRate: served?.changeRate,
      isSeed: served?.database.isSeed ?? false,
    };
  }

  const showPage: Handler = (request, reply) => {
    const served = releases.current();
    const shared = contentFor(request);
    if (!wantsHtml(request.headers.accept)) return page.sendText(reply, pageText(shared));
    const lang = pageLanguage(request.headers['accept-language']);
    const include = inLanguage(served?.database.hasNetworks ? NETWORK_MEMBERS : undefined, lang) as
      | Included
      | undefined;
    const resultFor = (address: string): LookupResult | undefined =>
      shared.keyless ? served && resultOf(served.answer(address, include)) : undefined;
    const own = resultFor(callerOf(request));
    const content = { ...shared, lang, own, example: resultFor(EXAMPLE_ADDRESS), lookup: undefined };
    const asked = askedLookup(request.raw.url!);
    if (asked === undefined || served === undefined) return page.sendHtml(reply, lookupHtml(content));
    if (!shared.keyless) return responder.error(reply, 'keyless_off');
    request.apiKey = pageKeys.visitor(callerOf(request));
    const send = (status: number, problem?: Notice, result?: LookupResult, headers: readonly string[] = []): void =>
      page.sendHtml(reply, lookupHtml({ ...content, lookup: { ...asked, result, problem } }), status, headers);
    const { ip, at } = asked;
    const show = (answers: Answers): void => {
      if ('error' in answers) {
        const { status, message } = WIRE_ERRORS[answers.error];
        send(status, ['No answer', `${[message, answers.more ?? []].flat().join('; ')}.`]);
        return;
      }
      const answer = answers.served.answer(ip, include);
      metrics?.lookup(answer.outcome);
      const result = resultOf(answer);
      if (result === undefined) send(400, INVALID_ADDRESS);
      else send(200, undefined, result);
    };
    const asks = { addresses: 1, at: at === '' ? undefined : at, include };
    return context.withAnswers(reply, asks, show, (headers) => send(429, RATE_USED_UP, undefined, headers));
  };

  const developersPage: Handler = (request, reply) => page.sendHtml(reply, developersHtml(contentFor(request)));

  const dataPage: Handler = (request, reply) => page.sendHtml(reply, dataHtml(contentFor(request)));

  const pageKey: Handler = (request, reply) => {
    if (!isKeyless(request)) return responder.error(reply, 'keyless_off');
    const key = pageKeys.issue(callerOf(request), request.headers.host);
    return responder.document(reply, 200, JSON_TYPE, JSON.stringify(key), ['cache-control', 'no-store']);
  };

  /** The reference, which is the same for all requests. */
  let reference: string | undefined;
  const docs: Handler = (_, reply) => {
    reference ??= docsHtml(openApiDocument(baseUrls ?? {}) as OpenApi, page.assets);
    return page.sendHtml(reply, reference);
  };

  return { page: showPage, developersPage, dataPage, pageKey, docs };
}
