// What single look-ups are held against: node:http alone, with a constant body of as many bytes as its argument says.
// Prints its port.
import { createServer } from 'node:http';

const body = 'x'.repeat(Number(process.argv[2]));
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
