/** Lookups of single addresses and of batches. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { bodyIsExpected, isEncoded } from '../body.js';
import { callerOf } from '../caller.js';
import type { Include } from '../include.js';
import type { Context, Handler } from './context.js';

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
    const { include } = request.query as { include: Include };
    if (include === 'unknown') {
      responder.error(request, reply, 'include_unknown');
      return undefined;
    }
    return context.countAddresses(request, reply, 1, (rate) =>
      context.withAnswers(request, reply, rate, (served, headers) => {
        const result = served.lookup(ip, include);
        metrics?.lookup(result);
        if (result === undefined) responder.error(request, reply, 'invalid_address', headers);
        else responder.json(request, reply, 200, served.json(result, include), headers, 'latin1');
      }),
    );
  };

  const lookUpSelf: Handler = (request, reply) => lookUp(request, reply, callerOf(request));

  const lookUpBatch: Handler = (request, reply) => {
    const ips = request.body as string[];
    const { include } = request.query as { include: Include };
    if (include === 'unknown') {
      responder.error(request, reply, 'include_unknown');
      return undefined;
    }
    const limit = context.rateOf(request.apiKey!);
    if (limit !== 0 && ips.length > limit) {
      responder.error(request, reply, 'batch_over_rate');
      return undefined;
    }
    return context.countAddresses(request, reply, ips.length, (rate) =>
      context.withAnswers(request, reply, rate, (served, headers) => {
        const { json, outcomes } = served.batch(ips, include);
        metrics?.lookups(outcomes);
        responder.json(request, reply, 200, json, headers, 'latin1');
      }),
    );
  };

  return {
    lookup: ((request, reply) => lookUp(request, reply, (request.params as { ip: string }).ip)) as Handler,
    lookupSelf: lookUpSelf,
    lookupSelfBare: lookUpSelf,
    batch: lookUpBatch,
  };
}
