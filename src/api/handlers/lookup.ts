/** Lookups of single addresses and of batches. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatIPv4, formatIPv6Full } from '../../address/format.js';
import { parseAddress } from '../../address/parse.js';
import { addressWords } from '../../address/words.js';
import { HISTORY_COST } from '../../limits.js';
import { bodyIsExpected, isEncoded } from '../body.js';
import { callerOf } from '../caller.js';
import type { QueryParameters } from '../include.js';
import { type Context, type Handler, settle } from './context.js';

/** Whether a client waits for 100 Continue before it sends the body. Node refuses any other expectation. */
function expectsContinue({ headers, raw }: FastifyRequest): boolean {
  return headers.expect !== undefined && raw.httpVersion === '1.1';
}

/** Refuses a batch before its body is read if the rate is used up or the body cannot be used. */
export function checkBatch(context: Context, request: FastifyRequest, reply: FastifyReply) {
  return context.countAddresses(request, reply, 0, () => {
    if (isEncoded(request.headers)) {
      const headers = ['accept-encoding', 'identity', 'connection', 'close'];
      context.responder.error(request, reply, 'body_encoded', headers);
    } else if (expectsContinue(request) && bodyIsExpected(request.headers)) {
      reply.raw.writeContinue();
    }
  });
}

export function lookupHandlers(context: Context) {
  const { responder } = context;
  const { metrics } = context.deps;

  const lookUp = (request: FastifyRequest, reply: FastifyReply, ip: string) => {
    const { include } = request.query as QueryParameters;
    if (include === 'unknown') return context.refuseInclude(request, reply);
    return context.countAddresses(request, reply, 1, (rate) =>
      context.withAnswers(request, reply, rate, (served, headers) => {
        const { json, outcome } = served.answer(ip, include);
        metrics?.lookup(outcome);
        if (outcome === 'invalid') responder.error(request, reply, 'invalid_address', headers);
        else responder.json(request, reply, 200, json, headers, 'latin1');
      }),
    );
  };

  const lookUpSelf: Handler = (request, reply) => lookUp(request, reply, callerOf(request));

  const lookUpBatch: Handler = (request, reply) => {
    const ips = request.body as string[];
    const { include } = request.query as QueryParameters;
    if (include === 'unknown') return context.refuseInclude(request, reply);
    const limit = context.rateOf(request.apiKey!);
    if (limit !== 0 && ips.length > limit) return responder.error(request, reply, 'batch_over_rate');
    return context.countAddresses(request, reply, ips.length, (rate) =>
      context.withAnswers(request, reply, rate, (served, headers) => {
        const { json, outcomes } = served.batch(ips, include);
        metrics?.lookups(outcomes);
        responder.json(request, reply, 200, json, headers, 'latin1');
      }),
    );
  };

  const showHistory: Handler = (request, reply) => {
    const words = new Uint32Array(4);
    const family = parseAddress((request.params as { ip: string }).ip, words);
    if (family === 0) return responder.error(request, reply, 'invalid_address');
    const address = { family, words: words.subarray(0, addressWords(family)) };
    const rate = context.rateOf(request.apiKey!);
    return context.countAddresses(request, reply, Math.min(HISTORY_COST, rate || HISTORY_COST), (headers) =>
      settle(request, context.deps.pastDays.periods(address), (found) => {
        // What is wrong with an entry names files of the server.
        const periods = found.map((each) => ('error' in each ? { ...each, error: 'not kept' } : each));
        const ip = family === 4 ? formatIPv4(words[0]!) : formatIPv6Full(words);
        responder.json(request, reply, 200, JSON.stringify({ ip, periods }), headers);
      }),
    );
  };

  return {
    history: showHistory,
    lookup: ((request, reply) => lookUp(request, reply, (request.params as { ip: string }).ip)) as Handler,
    lookupSelf: lookUpSelf,
    lookupSelfBare: lookUpSelf,
    batch: lookUpBatch,
  };
}
