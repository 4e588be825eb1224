/** State and data of the server; no key is needed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasPartition } from '../../database/release.js';
import { attributionOf, openApiDocument } from '../openapi.js';
import { type CompactJob, PUBLIC_PARTITIONS } from '../releases/public-database.js';
import { type Context, type Handler, replyWhenReady } from './context.js';

/** A request target with the query parameter `eu`. */
const ASKS_FOR_EU = /[?&]eu(?:[=&#]|$)/;

export function serverHandlers(context: Context) {
  const { responder, deps } = context;
  const baseUrls = deps.baseUrls ?? {};

  const health: Handler = (_, reply) => responder.json(reply, 200, '{"status":"ok"}');

  const readiness: Handler = (request, reply) => {
    const served = deps.releases.current();
    if (context.phase !== 'serving') responder.error(reply, 'stopping');
    else if (served === undefined) responder.error(reply, 'no_database');
    else if (!deps.keys.isReadable) responder.error(reply, 'keys_unavailable');
    else if (deps.eu !== true && ASKS_FOR_EU.test(request.raw.url!)) responder.error(reply, 'not_eu');
    else {
      const eu = deps.eu === true ? { eu: true } : {};
      const seed = served.database.isSeed ? { seed: true } : {};
      responder.json(reply, 200, JSON.stringify({ status: 'ready', release: served.id, ...seed, ...eu }));
    }
    return undefined;
  };

  const attribution: Handler = (_, reply) => {
    const served = deps.releases.current();
    if (served === undefined) return responder.error(reply, 'no_database');
    return responder.json(reply, 200, JSON.stringify(attributionOf(served.database.manifest)));
  };

  /** The OpenAPI document, which names the sources of the current release. */
  let document = { release: '', json: JSON.stringify(openApiDocument(baseUrls)) };
  const openApi: Handler = (_, reply) => {
    const served = deps.releases.current();
    if (served !== undefined && served.id !== document.release) {
      document = {
        release: served.id,
        json: JSON.stringify(openApiDocument(baseUrls, served.database.manifest, served.labelNames)),
      };
    }
    return responder.json(reply, 200, document.json);
  };

  const publicFile = (content: CompactJob['content']) => (request: FastifyRequest, reply: FastifyReply) => {
    const served = deps.releases.current();
    const isMissing = served !== undefined && !hasPartition(served.database.manifest, PUBLIC_PARTITIONS[content]);
    if (!deps.page.publicDb || isMissing) responder.error(reply, 'not_found');
    else if (served === undefined) responder.error(reply, 'no_database');
    else {
      const etag = `"${served.id}"`;
      // Browsers ask with the ETag by themselves.
      const headers = ['etag', etag, 'cache-control', 'public, no-cache'];
      // Weak or not, in a list or not (RFC 9110 section 13.1.2): an id has no character that a list has.
      if (request.headers['if-none-match']?.includes(etag)) responder.notModified(reply, headers);
      else
        return replyWhenReady(
          reply,
          deps.publicDatabase.bytes({ id: served.id, dir: served.database.dir }, content),
          (bytes) => responder.bytes(reply, bytes, headers),
        );
    }
    return undefined;
  };

  return {
    health,
    readiness,
    attribution,
    openApi,
    publicDb: publicFile('country'),
    publicNetworks: publicFile('networks'),
    publicKinds: publicFile('kinds'),
  };
}
