// What single lookups are compared with: a server that does nothing but answer with the same headers and body.
//
// The Fastify route does what a usual one does: `reply.headers`, then `reply.send` of a text, with Fastify's defaults. It is
// spared what a real route has to do besides: to check a key, count a rate, look up an address, and make the text. The
// server of node:http answers with one `writeHead` and one `end`, as most do.
//
// Arguments: "node" (node:http alone) or "fastify" (one Fastify route), the headers and the body as JSON, and the route.
// Prints its port.
import { createServer } from 'node:http';
import { fastify } from 'fastify';

const [, , kind, answer, route] = process.argv;
const { headers, body } = JSON.parse(answer);

function bareNode() {
  const server = createServer((_request, response) => {
    response.writeHead(200, headers);
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}

async function bareFastify() {
  const app = fastify();
  app.get(route, (_request, reply) => reply.headers(headers).send(body || undefined));
  await app.listen({ port: 0, host: '127.0.0.1' });
  console.log(app.server.address().port);
}

if (kind === 'node') bareNode();
else await bareFastify();
