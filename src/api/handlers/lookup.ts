/** Lookups of single addresses and of batches. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatIPv4, formatIPv6Full } from '../../address/format.js';
import { parseAddress } from '../../address/parse.js';
import { addressWords } from '../../address/words.js';
import { bodyIsExpected, isEncoded } from '../body.js';
import { callerOf } from '../caller.js';
import type { QueryParameters } from '../include.js';
import type { Context, Handler } from './context.js';

/** Whether a client waits for 100 Continue before it sends the body. Node refuses any other expectation. */
function expectsContinue({ headers, raw }: FastifyRequest): boolean {
  return headers.expect !== undefined && raw.httpVersion === '1.1';
}

/** Refuses a batch before its body is read if the rate is used up or the body cannot be used. */
export function checkBatch(context: Context, reply: FastifyReply) {
  const { request } = reply;
  return context.countAddresses(reply, 0, () => {
    if (isEncoded(request.headers)) {
      const headers = ['accept-encoding', 'identity', 'connection', 'close'];
      context.responder.error(reply, 'body_encoded', headers);
    } else if (expectsContinue(request) && bodyIsExpected(request.headers)) {
      reply.raw.writeContinue();
    }
  });
}

export function lookupHandlers(context: Context) {
  const { responder } = context;
  const { metrics } = context.deps;

  const lookUp = (reply: FastifyReply, ip: string) => {
    const { at, include } = reply.request.query as QueryParameters;
    if (typeof include === 'string') return context.refuseInclude(reply, include);
    return context.withAnswers(reply, { addresses: 1, at, include }, (answers, headers) => {
      if ('error' in answers) return context.noAnswers(reply, answers, headers);
      const { json, outcome } = answers.served.answer(ip, include);
      metrics?.lookup(outcome);
      if (outcome === 'invalid') return responder.error(reply, 'invalid_address', headers);
      return responder.json(reply, 200, json, headers, 'latin1');
    });
  };

  const lookUpSelf: Handler = (request, reply) => lookUp(reply, callerOf(request));

  const lookUpBatch: Handler = (request, reply) => {
    const ips = request.body as string[];
    const { at, include } = request.query as QueryParameters;
    if (typeof include === 'string') return context.refuseInclude(reply, include);
    const limit = context.rateOf(request.apiKey!);
    if (limit !== 0 && ips.length > limit) return responder.error(reply, 'batch_over_rate');
    return context.withAnswers(reply, { addresses: ips.length, at, include }, (answers, headers) => {
      if ('error' in answers) return context.noAnswers(reply, answers, headers);
      const { json, outcomes } = answers.served.batch(ips, include);
      metrics?.lookups(outcomes);
      return responder.json(reply, 200, json, headers, 'latin1');
    });
  };

  const showHistory: Handler = (request, reply) => {
    const words = new Uint32Array(4);
    const family = parseAddress((request.params as { ip: string }).ip, words);
    if (family === 0) return responder.error(reply, 'invalid_address');
    const address = { family, words: words.subarray(0, addressWords(family)) };
    const { releases } = context.deps;
    const cost = Math.min(releases.periodsCost(request.apiKey!.id), context.rateOf(request.apiKey!));
    return context.countAddresses(reply, cost, async (headers) => {
      const found = await releases.periods(address, context.asker(reply));
      if (found === undefined) return context.noAnswers(reply, { error: 'history_busy' }, headers);
      // What is wrong with an entry names files of the server.
      const periods = found.map((each) => ('error' in each ? { ...each, error: 'not kept' } : each));
      const ip = family === 4 ? formatIPv4(words[0]!) : formatIPv6Full(words);
      return responder.json(reply, 200, JSON.stringify({ ip, periods }), headers);
    });
  };

  return {
    history: showHistory,
    lookup: ((request, reply) => lookUp(reply, (request.params as { ip: string }).ip)) as Handler,
    lookupSelf: lookUpSelf,
    lookupSelfBare: lookUpSelf,
    batch: lookUpBatch,
  };
}
