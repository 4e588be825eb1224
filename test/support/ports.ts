/** Ports for servers that tests start. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports below those that the system gives to the connections of clients, which could take one before the server does. */
const FIRST = 20_000;
const COUNT = 12_000;

/** Returns a port of the loopback address that is free now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const server = createServer();
    const isFree = new Promise<boolean>((resolve) => {
      server.once('listening', () => resolve(true));
      server.once('error', () => resolve(false));
    });
    server.listen(port, '127.0.0.1');
    if (!(await isFree)) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
