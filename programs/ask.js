/** Ways to ask a program for the countries of addresses. Each returns a function from addresses to answers in the same order. */
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';

/** Runs a shell script; resolves to what it printed. */
function run(script, input = '') {
  return new Promise((resolve, reject) => {
    const child = execFile('bash', ['--norc', '-c', script], { maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(Object.assign(error, { stderr: `${stdout}${stderr}` }));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** A program that reads addresses, one a line, and prints one line for each. */
export function lines(command) {
  return async (addresses) => (await run(command, `${addresses.join('\n')}\n`)).replace(/\n$/, '').split('\n');
}

/** A program for one address, which the command has as 8.8.8.8. @param read turns what it prints into an answer */
export function each(command, read = (text) => text.trim()) {
  const END = '\n--end--\n';
  return async (addresses) => {
    const commands = addresses.map((ip) => `${command.trim().replaceAll('8.8.8.8', ip)} 2>&1 || true\nprintf '${END}'`);
    // In pieces: a script has a greatest length.
    return (await run('exec bash --norc -s', commands.join('\n'))).split(END).slice(0, -1).map(read);
  };
}

/** A capture of one UDP packet from each address: a pcap file of raw IP packets. */
export function capture(addresses) {
  const packets = addresses.map((ip) => {
    const source = bytesOf(ip);
    const udpHeader = Buffer.from([4, 0, 4, 1, 0, 8, 0, 0]);
    const header =
      source.length === 4
        ? [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, ...source, 127, 0, 0, 1]
        : [0x60, 0, 0, 0, 0, 8, 17, 64, ...source, ...Array(15).fill(0), 1];
    const record = new Uint32Array([1_795_000_000, 0, header.length + 8, header.length + 8]);
    return Buffer.concat([Buffer.from(record.buffer), Buffer.from(header), udpHeader]);
  });
  const RAW_IP = 101;
  const start = new Uint32Array([0xa1b2c3d4, 0x0004_0002, 0, 0, 65_535, RAW_IP]);
  return Buffer.concat([Buffer.from(start.buffer), ...packets]);
}

/** A program that reads everything at once and prints a report. @param write what it reads @param read returns the answer for an address */
export function report(command, write, read) {
  return async (addresses) => {
    const answer = read(await run(command, write(addresses)));
    return addresses.map(answer);
  };
}

/** Asks several at a time. */
async function pooled(addresses, ask, width = 8) {
  const answers = [];
  let next = 0;
  const worker = async () => {
    while (next < addresses.length) {
      const index = next++;
      answers[index] = await ask(addresses[index]);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return answers;
}

/** A request over HTTP. @param request what is asked for an address @param read turns a response into an answer */
export function http(request, read = ({ body }) => body.trim()) {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const one = (ip) =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: 80, path: '/', agent, timeout: 10_000, ...request(ip) };
      get(options, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () => resolve(read({ status: response.statusCode, headers: response.headers, body })));
        response.on('error', reject);
      }).on('error', reject);
    });
  return (addresses) => pooled(addresses, one);
}

/** The client's address as a proxy in front of a server sends it. */
export const forwarded = (ip) => ({ headers: { 'x-forwarded-for': ip } });

/** The client's address as its own; the server listens on both families. */
export const fromClient = (ip) => ({ host: ip.includes(':') ? '::1' : '127.0.0.1', localAddress: ip, agent: false });

/** A TCP connection from each address. @param read turns what the server sent, or the error's code, into an answer */
export function connection({ port, send = () => '', read, isEnough = () => true }) {
  const one = (ip) =>
    new Promise((resolve) => {
      let text = '';
      const { host, localAddress } = fromClient(ip);
      const socket = connect({ host, localAddress, port }, () => socket.write(send(ip)));
      socket.setTimeout(10_000, () => socket.destroy());
      socket.setEncoding('latin1').on('data', (chunk) => {
        text += chunk;
        if (isEnough(text)) socket.destroy();
      });
      socket.on('error', ({ code }) => {
        text += code;
      });
      socket.on('close', () => resolve(read(text)));
    });
  return (addresses) => pooled(addresses, one);
}

/** A UDP packet and its answer. @param packet returns the bytes @param source returns the address to send from, if any */
export function udp({ port, packet, source = () => undefined, read }) {
  const one = (ip) =>
    new Promise((resolve, reject) => {
      const from = source(ip);
      const isIPv6 = from?.includes(':') ?? false;
      const socket = createSocket(isIPv6 ? 'udp6' : 'udp4');
      const timer = setTimeout(() => socket.close(() => reject(new Error(`no answer for ${ip}`))), 3_000);
      socket.on('error', (error) => {
        clearTimeout(timer);
        socket.close();
        reject(error);
      });
      socket.on('message', (message) => {
        clearTimeout(timer);
        socket.close();
        resolve(read(message));
      });
      // Connected, it is told that nobody listens yet.
      const to = isIPv6 ? '::1' : '127.0.0.1';
      socket.bind({ address: from }, () => socket.connect(port, to, () => socket.send(packet(ip, socket.address()))));
    });
  return (addresses) => pooled(addresses, one);
}

/** The bytes of an address. */
function bytesOf(ip) {
  if (!ip.includes(':')) return Buffer.from(ip.split('.').map(Number));
  const [head, tail] = ip.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const groups = tail === undefined ? head : [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** The number of TXT records. */
const TXT = 16;

/**
 * A question for the TXT record of a name, or the IPv4 address. The client's address is in the question (EDNS client subnet), as
 * resolvers send it, or it is the packet's own.
 */
export function dns(name, { port = 53, type = TXT, isClient = false } = {}) {
  const question = Buffer.concat([
    ...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0, 0, type, 0, 1]),
  ]);
  const packet = (ip) => {
    const header = Buffer.from([0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, isClient ? 0 : 1]);
    if (isClient) return Buffer.concat([header, question]);
    const bytes = bytesOf(ip);
    const family = bytes.length === 4 ? 1 : 2;
    const option = Buffer.from([0, 8, 0, 4 + bytes.length, 0, family, 8 * bytes.length, 0, ...bytes]);
    const record = Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, option.length, ...option]);
    return Buffer.concat([header, question, record]);
  };
  const read = (message) => {
    if (message.readUInt16BE(6) === 0) return `no answer, code ${message[3] & 15}`;
    // The answer's name is a pointer of two bytes; type, class, lifetime and length are ten.
    const start = 12 + question.length + 12;
    if (type !== TXT) return message.subarray(start, start + 4).join('.');
    return message.toString('latin1', start + 1, start + 1 + message[start]);
  };
  return udp({ port, packet, read, ...(isClient ? { source: (ip) => ip } : {}) });
}
