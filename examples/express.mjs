// The country of each client in Express: PORT=3000 node examples/express.mjs
import express from 'express';
import { openDatabase } from 'ipatlas';

const database = openDatabase(undefined, { watch: true }); // follows each build
const app = express();
app.set('trust proxy', 'loopback'); // a proxy on this machine may name the client in X-Forwarded-For
app.use((request, _response, next) => {
  request.country = database.country(request.ip ?? ''); // undefined without an address, nulls without a country
  next();
});

app.get('/', (request, response) => response.json(request.country));
app.listen(Number(process.env.PORT ?? 3000));
