import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { headerLine, sendWhole, takesHead } from '../../src/api/whole-answer.js';
import { exchange } from '../support/serve.js';

it('is taken by this Node', () => {
  expect(takesHead()).toBe(true);
});

it.each(['a\r\nx-other: b', 'a\nb', 'a\rb', 'a\0b', 'a\u0100b'])(
  'makes no line of a value that would be more than one, or no text: %j',
  (value) => {
    expect(() => headerLine('x-served-by', value)).toThrow(TypeError);
  },
);

it('keeps the order of answers that are made in another one', async () => {
  const later: (() => void)[] = [];
  const server = createServer((request, response) => {
    const send = () =>
      sendWhole(response, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n', request.url!);
    if (request.url === '/3') {
      response.setHeader('Connection', 'close').end('/3');
      for (const one of later.reverse()) one();
    } else {
      later.push(send);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const requests = ['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join('');
  const answer = await exchange((server.address() as AddressInfo).port, requests);
  expect([...answer.matchAll(/\r\n\r\n(..)/g)].map(([, body]) => body)).toEqual(['/1', '/2', '/3']);
  server.close();
});

// Node ends the process where an answer counts as sent before it is its turn, as on a connection that a refusal has ended.
it('does not count as sent where the connection is gone', async () => {
  let sent = 0;
  let caught = 0;
  const server = createServer((request, response) => {
    request.socket.destroy();
    caught++;
    response.on('finish', () => sent++);
    sendWhole(response, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n', 'ab');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await exchange((server.address() as AddressInfo).port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect([caught, sent]).toEqual([1, 0]);
  server.close();
});
