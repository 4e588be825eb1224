/** Sign-up: making, showing and revoking keys. */

import type { FastifyReply } from 'fastify';
import { networkOf } from '../../address/network.js';
import { callerOf } from '../caller.js';
import type { KeyOutcome } from '../keys/sign-up.js';
import { type Context, type Handler, replyWhenReady } from './context.js';

/** Refused networks that a process remembers: enough for what one of them can try again at once. */
const MAX_REFUSED = 10_000;

export function keyHandlers(context: Context) {
  const { responder } = context;
  const { keyService, page, pageKeys } = context.deps;
  /** When a network may make a key again: nobody else is asked until then. */
  const refusedUntil = new Map<string, number>();

  function sendOutcome(reply: FastifyReply, outcome: KeyOutcome): undefined {
    if ('created' in outcome) responder.json(reply, 201, JSON.stringify(outcome.created));
    else if ('revoked' in outcome) responder.json(reply, 200, JSON.stringify(outcome.revoked));
    else {
      const { refused, retryIn } = outcome;
      const headers = retryIn === undefined ? [] : ['retry-after', String(Math.max(1, Math.ceil(retryIn / 1000)))];
      responder.error(reply, refused, headers);
    }
  }

  /** Makes a key for programs and for the page itself, but not for pages of other origins. */
  const signUp: Handler = (request, reply) => {
    const { origin, host } = request.headers;
    if (!page.signUp) return responder.error(reply, 'sign_up_closed');
    if (origin !== undefined && !pageKeys.isOrigin(origin, host)) return responder.error(reply, 'origin_refused');
    const caller = callerOf(request);
    const network = networkOf(caller, 64);
    const retryIn = (refusedUntil.get(network) ?? 0) - performance.now();
    if (retryIn > 0) return sendOutcome(reply, { refused: 'sign_up_limit', retryIn });
    return replyWhenReady(reply, keyService({ do: 'create', caller }), (outcome) => {
      if ('refused' in outcome && outcome.refused === 'sign_up_limit') {
        if (refusedUntil.size >= MAX_REFUSED) refusedUntil.clear();
        refusedUntil.set(network, performance.now() + outcome.retryIn!);
      }
      sendOutcome(reply, outcome);
    });
  };

  const revokeKey: Handler = (request, reply) => {
    const { id, selfIssued } = request.apiKey!;
    if (!selfIssued) return responder.error(reply, 'key_not_self_issued');
    return replyWhenReady(reply, keyService({ do: 'revoke', id }), (outcome) => sendOutcome(reply, outcome));
  };

  const currentKey: Handler = (request, reply) => {
    const key = request.apiKey!;
    const json = JSON.stringify({ id: key.id, rate: context.rateOf(key), self_issued: key.selfIssued });
    const send = (headers: string[]) => responder.json(reply, 200, json, headers);
    return context.countAddresses(reply, 0, send, send);
  };

  return { signUp, currentKey, revokeKey };
}
