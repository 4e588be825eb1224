// A model of many nodes that pull from one origin through caches: events in the order of their times, links and processors that
// are shared evenly, and nodes that send the requests of a real pull. fleet.js feeds it with what it measured.
import { randomWords } from './measure.js';

/** Items in the order of their keys (a binary heap). */
class Queue {
  #items = [];

  get first() {
    return this.#items[0];
  }

  add(key, value) {
    const items = this.#items;
    let index = items.push({ key, value }) - 1;
    while (index > 0 && items[(index - 1) >> 1].key > items[index].key) {
      const parent = (index - 1) >> 1;
      [items[parent], items[index]] = [items[index], items[parent]];
      index = parent;
    }
  }

  /** Removes the first item, and returns its value. */
  take() {
    const items = this.#items;
    const { value } = items[0];
    const last = items.pop();
    if (items.length === 0) return value;
    items[0] = last;
    for (let index = 0, child = 1; child < items.length; child = 2 * index + 1) {
      if (items[child + 1]?.key < items[child].key) child++;
      if (items[child].key >= items[index].key) break;
      [items[child], items[index]] = [items[index], items[child]];
      index = child;
    }
    return value;
  }
}

/** Seconds since the start, and what happens when. */
class Clock {
  now = 0;
  #events = new Queue();

  after(seconds, run) {
    this.#events.add(this.now + seconds, run);
  }

  runUntil(end) {
    while (this.#events.first?.key <= end) {
      this.now = this.#events.first.key;
      this.#events.take()();
    }
  }
}

/** A link or processors: `capacity` units a second, shared evenly by all that use it, of which one gets at most `each`. */
class Shared {
  #clock;
  #capacity;
  #each;
  /** Units that somebody who was there from the beginning would have by now. Users are done when it reaches their key. */
  #served = 0;
  #since = 0;
  #users = new Queue();
  #count = 0;
  #plan = 0;

  constructor(clock, capacity, each = capacity) {
    this.#clock = clock;
    this.#capacity = capacity;
    this.#each = each;
  }

  #settle() {
    const rate = Math.min(this.#each, this.#capacity / this.#count);
    if (this.#count > 0) this.#served += (this.#clock.now - this.#since) * rate;
    this.#since = this.#clock.now;
  }

  /** Plans the end of the user who is done first; an earlier plan is void. */
  #planNext() {
    const plan = ++this.#plan;
    if (this.#count === 0) return;
    const rate = Math.min(this.#each, this.#capacity / this.#count);
    this.#clock.after(Math.max(0, this.#users.first.key - this.#served) / rate, () => {
      if (plan !== this.#plan) return;
      this.#settle();
      const done = this.#users.take();
      this.#count--;
      this.#planNext();
      done();
    });
  }

  use(units, done) {
    this.#settle();
    this.#users.add(this.#served + units, done);
    this.#count++;
    this.#planNext();
  }
}

/** Counts requests and bytes of a server, and finds the busiest second. */
class Load {
  requests = 0;
  bytes = 0;
  #seconds = new Map();

  add(now, bytes) {
    this.requests++;
    this.bytes += bytes;
    const second = this.#seconds.get(Math.floor(now)) ?? { requests: 0, bytes: 0 };
    second.requests++;
    second.bytes += bytes;
    this.#seconds.set(Math.floor(now), second);
  }

  peak(what) {
    return Math.max(0, ...[...this.#seconds.values()].map((second) => second[what]));
  }
}

/**
 * Simulates a fleet.
 *
 * @param assumptions of assumptions.json, by name
 * @param pull what was measured: `idle` and `night`, the requests of a pull without and with a new release, each
 *   `{ kind: 'missing' | 'timestamp' | 'file', bytes }`; `startSeconds` before the first request and `installSeconds` after the
 *   last one, of one processor
 * @param options `nodes`; `jitter` in seconds; `isScheduled`: whether nodes come back, or pull once at a random time within the jitter;
 *   `cores`: processors that all nodes share, none if each has its own; `areCachesBad`; `isDirect`: no caches;
 *   `outage`: seconds from 0 on during which the origin does not answer; `publishAt`: when the release appears; `until`: the end
 * @returns `origin` and `cache` (the busiest one): their {@link Load}; `half`, `most`, `all`: seconds from publishing until so many
 *   nodes (50 %, 99 %, all) have the release, NaN if they do not; `failed`: pulls that failed; `oldest`: the greatest age in seconds
 *   of the signed timestamp that a node had
 */
export function simulate(assumptions, pull, options) {
  const { nodes, jitter, isScheduled, areCachesBad, isDirect, cores, outage = 0, publishAt = 0, until } = options;
  const { roundTripSeconds, headerBytes, scheduleSeconds, nodeBitsPerSecond, originBitsPerSecond } = assumptions;
  const { cacheBitsPerSecond, nodesPerCache, lostShare, delaySeconds, staleSeconds, refreshSeconds } = assumptions;
  const clock = new Clock();
  const words = randomWords(12345);
  const random = () => words() / 2 ** 32;
  const origin = { load: new Load(), link: new Shared(clock, originBitsPerSecond / 8, nodeBitsPerSecond / 8) };
  const processors = cores === undefined ? undefined : new Shared(clock, cores, 1);
  const compute = (seconds, done) =>
    processors === undefined ? clock.after(seconds, done) : processors.use(seconds, done);
  const caches = Array.from({ length: isDirect ? 0 : Math.ceil(nodes / nodesPerCache) }, () => ({
    load: new Load(),
    link: new Shared(clock, cacheBitsPerSecond / 8, nodeBitsPerSecond / 8),
    kept: new Map(),
  }));
  const arrivals = [];
  let failed = 0;
  let oldest = 0;

  /** The answer of the origin: whether there is one, when its timestamp was signed, and whether that names the release. */
  function askOrigin(bytes, done) {
    clock.after(roundTripSeconds, () => {
      if (clock.now < outage) return done({ isAnswer: false });
      origin.load.add(clock.now, bytes);
      const refreshed = Math.floor(clock.now / refreshSeconds) * refreshSeconds;
      const isNew = clock.now >= publishAt;
      const signed = isNew ? Math.max(refreshed, publishAt) : refreshed;
      origin.link.use(bytes, () => done({ isAnswer: true, isNew, signed }));
    });
  }

  function ask(cache, { kind, bytes, name }, done) {
    const size = kind === 'missing' ? headerBytes : bytes + headerBytes;
    if (cache === undefined) return askOrigin(size, done);
    const delay = areCachesBad ? -Math.log(1 - random()) * delaySeconds : 0;
    clock.after(roundTripSeconds + delay, () => {
      cache.load.add(clock.now, size);
      if (areCachesBad && random() < lostShare) return done({ isAnswer: false });
      const deliver = (answer) => (answer.isAnswer ? cache.link.use(size, () => done(answer)) : done(answer));
      const key = `${kind} ${name}`;
      const kept = cache.kept.get(key);
      const lifetime = kind === 'file' ? Number.POSITIVE_INFINITY : areCachesBad ? staleSeconds : 0;
      if (kept?.answer !== undefined && clock.now < kept.time + lifetime) return deliver(kept.answer);
      // Requests for what the cache is fetching wait for it.
      if (kept?.waiting !== undefined) return kept.waiting.push(deliver);
      const waiting = [deliver];
      cache.kept.set(key, { waiting });
      // The timestamp that has not changed is a 304.
      const isSame = kind === 'timestamp' && kept?.answer?.isNew === clock.now >= publishAt;
      askOrigin(isSame ? headerBytes : size, (answer) => {
        cache.kept.set(key, answer.isAnswer ? { answer, time: clock.now } : {});
        for (const each of waiting) each(answer);
      });
    });
  }

  /** Sends requests one after the other, each again at most twice after 1 and 2 s, with the jitter of download() in https.ts. */
  function send(node, requests, index, failures, done) {
    if (index === requests.length) return done(true);
    const request = requests[index];
    ask(node.cache, request, ({ isAnswer, isNew, signed }) => {
      if (isAnswer && request.kind === 'timestamp') {
        oldest = Math.max(oldest, clock.now - node.signed);
        node.signed = signed;
      }
      if (!isAnswer) {
        if (failures === 2) return done(false);
        clock.after(2 ** failures * (0.5 + random() / 2), () => send(node, requests, index, failures + 1, done));
      } else if (request.kind === 'timestamp' && isNew && !node.isNew) {
        send(node, pull.night, pull.night.findIndex(({ kind }) => kind === 'timestamp') + 1, 0, (isDone) => {
          if (!isDone) return done(false);
          compute(pull.installSeconds, () => {
            node.isNew = true;
            arrivals.push(clock.now - publishAt);
            done(true);
          });
        });
      } else send(node, requests, index + 1, 0, done);
    });
  }

  const delay = () => random() * jitter;
  /** A run of the schedule: failed pulls are repeated after 60 s, 120 s, …, as schedule.ts does, until the next time comes. */
  function run(node, wait) {
    compute(wait === 60 || !isScheduled ? pull.startSeconds : 0, () =>
      send(node, pull.idle, 0, 0, (isDone) => {
        if (!isDone) failed++;
        if (!isScheduled) return isDone ? undefined : run(node, 60);
        const next = (Math.floor(clock.now / scheduleSeconds) + 1) * scheduleSeconds;
        if (!isDone && clock.now + wait < next) clock.after(wait, () => run(node, 2 * wait));
        else clock.after(next - clock.now + delay(), () => run(node, 60));
      }),
    );
  }

  for (let index = 0; index < nodes; index++) {
    const node = { cache: caches[Math.floor(index / nodesPerCache)], isNew: false, signed: 0 };
    clock.after(delay(), () => run(node, 60));
  }
  clock.runUntil(until);
  arrivals.sort((a, b) => a - b);
  const when = (share) => arrivals[Math.ceil(share * nodes) - 1] ?? Number.NaN;
  const cache = caches.map(({ load }) => load).sort((a, b) => b.bytes - a.bytes)[0];
  return { origin: origin.load, cache, half: when(0.5), most: when(0.99), all: when(1), failed, oldest };
}
