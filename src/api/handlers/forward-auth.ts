/** Forward auth: whether a proxy should let a client in. The query of the request, and what follows the name, are ignored. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { forwardedCaller } from '../caller.js';
import { gateOf, UNKNOWN_HEADERS } from '../forward-auth.js';
import type { Context, Handler } from './context.js';

export function forwardAuthHandler(context: Context): Handler {
  const { responder } = context;
  const { releases, metrics, forwardAuth = [] } = context.deps;
  const gates = new Map(forwardAuth.map((rule) => [rule.name, { rule, decide: gateOf(rule) }]));

  return (request: FastifyRequest, reply: FastifyReply) => {
    const gate = gates.get((request.params as { name: string }).name);
    if (gate === undefined) return responder.error(reply, 'not_found', UNKNOWN_HEADERS);
    const { name, failsOpen } = gate.rule;
    const caller = forwardedCaller(request);
    if (caller === undefined) {
      metrics?.forwardAuth(name, 'untrusted');
      return responder.error(reply, 'client_unknown', UNKNOWN_HEADERS);
    }
    const release = releases.current();
    const decision = release && gate.decide(caller, release);
    if (decision === undefined) {
      metrics?.forwardAuth(name, 'unavailable');
      if (failsOpen) return responder.empty(reply, 200, UNKNOWN_HEADERS);
      return responder.error(reply, 'no_database', UNKNOWN_HEADERS);
    }
    metrics?.forwardAuth(name, decision.isAllowed ? 'allowed' : 'refused');
    if (decision.isAllowed) return responder.empty(reply, 200, decision.headers);
    return responder.error(reply, 'client_refused', decision.headers);
  };
}
