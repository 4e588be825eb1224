/** The page for people, its keys, and the readable documentation. */
import { callerOf } from '../caller.js';
import { serverUrl } from '../openapi.js';
import { askedAddress, type Page, requestedUrl, wantsHtml } from '../page/page.js';
import { JSON_TYPE } from '../responses.js';
import { type Context, type Handler, NO_STORE } from './context.js';

const RATE_USED_UP = 'Too many lookups; try again in a minute.';

export function pageHandlers(context: Context, page: Page) {
  const { responder } = context;
  const { release, metrics, pageKeys, baseUrls, page: settings } = context.deps;

  const showPage: Handler = (request, reply) => {
    const served = release();
    const content = {
      baseUrl: baseUrls?.default === undefined ? requestedUrl(request) : serverUrl(baseUrls.default),
      manifest: served?.manifest,
      isSeed: served?.isSeed ?? false,
      own: settings.keyless ? served?.lookup(callerOf(request)) : undefined,
      lookup: undefined,
    };
    const ip = askedAddress(request.raw.url!);
    if (ip === undefined || served === undefined || !wantsHtml(request.headers.accept)) {
      page.send(request, reply, content);
      return undefined;
    }
    if (!settings.keyless) {
      responder.error(request, reply, 'keyless_off');
      return undefined;
    }
    request.apiKey = pageKeys.visitor(callerOf(request));
    const refuse = (headers: string[]) =>
      page.send(request, reply, { ...content, lookup: { ip, result: undefined, problem: RATE_USED_UP } }, 429, headers);
    return context.countAddresses(
      request,
      reply,
      1,
      () => {
        const result = served.lookup(ip);
        metrics?.lookup(result);
        const problem = result === undefined ? { problem: 'This is not an IP address.' } : {};
        page.send(request, reply, { ...content, lookup: { ip, result, ...problem } }, result === undefined ? 400 : 200);
      },
      refuse,
    );
  };

  const pageKey: Handler = (request, reply) => {
    if (settings.keyless) {
      const key = pageKeys.issue(callerOf(request), request.headers.host);
      responder.document(request, reply, 200, JSON_TYPE, JSON.stringify(key), NO_STORE);
    } else responder.error(request, reply, 'keyless_off');
    return undefined;
  };

  const docs: Handler = (request, reply) => void page.sendDocs(request, reply);

  return { page: showPage, pageKey, docs };
}
