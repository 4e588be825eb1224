// The country of each client in Fastify: PORT=3000 node examples/fastify.mjs
import fastify from 'fastify';
import { openDatabase } from 'ipatlas';

const database = openDatabase(undefined, { watch: true }); // follows each build
const app = fastify({ trustProxy: 'loopback' }); // a proxy on this machine may name the client in X-Forwarded-For
app.decorateRequest('country');
app.addHook('onRequest', async (request) => {
  request.country = database.country(request.ip); // nulls without a country
});

app.get('/', async (request) => request.country);
await app.listen({ port: Number(process.env.PORT ?? 3000) });
