/**
 * Keys that people make for themselves. One process of a server does this for all workers, so that there is one count.
 *
 * What is known of a person is a salted hash of the network, in memory, for an hour at most.
 */
import { AtlasError, messageOf } from '../../errors.js';
import { SIGN_UP_RATE, SIGN_UP_WINDOW_MS, SIGN_UPS_PER_NETWORK, SIGN_UPS_TOTAL } from '../../limits.js';
import type { Log } from '../log.js';
import { createKey, keysAreBusy, revokeSelfIssuedKey, SERVER_WRITE_TIMEOUT_MS } from './key-store.js';

/** When to try again if another process is writing the keys, in milliseconds. */
const BUSY_RETRY_MS = 1_000;

/** What a worker asks for. */
export type KeyRequest =
  | {
      do: 'create';
      /** Hash of the network, see PageKeys. */
      network: string;
    }
  | { do: 'revoke'; id: string };

/** The result: a new key, the time of the revocation, or the reason why there is none. */
export type KeyOutcome =
  | { created: { id: string; key: string; rate: number; expires: string } }
  | { revoked: { id: string; revoked: string } }
  | {
      refused: 'sign_up_closed' | 'sign_up_limit' | 'key_not_self_issued' | 'keys_busy' | 'internal';
      retryIn?: number;
    };

export type KeyDesk = (request: KeyRequest) => KeyOutcome | Promise<KeyOutcome>;

export interface SignUpOptions {
  dataDir: string;
  isOpen: boolean;
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  defaultRate: number;
  log: Log;
  /** Keys in an hour from all networks together. */
  total?: number;
  /** The time in milliseconds. */
  now?: () => number;
}

/** Times at which keys were made, oldest first. */
type Times = number[];

export class SignUps {
  readonly #options: SignUpOptions;
  readonly #now: () => number;
  readonly #networks = new Map<string, Times>();
  readonly #all: Times = [];
  readonly #timer: NodeJS.Timeout;

  constructor(options: SignUpOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    // Nothing is kept for longer than an hour, even if nobody comes.
    this.#timer = setInterval(() => this.forget(), SIGN_UP_WINDOW_MS / 60).unref();
  }

  /** How many networks are remembered. */
  get remembered(): number {
    return this.#networks.size;
  }

  /** Forgets what is older than an hour. */
  forget(): void {
    const before = this.#now() - SIGN_UP_WINDOW_MS;
    dropBefore(this.#all, before);
    for (const [network, times] of this.#networks) {
      dropBefore(times, before);
      if (times.length === 0) this.#networks.delete(network);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Answers a request of a worker. Errors are logged, without anything of the request. */
  handle(request: KeyRequest): KeyOutcome {
    try {
      return request.do === 'create' ? this.#create(request.network) : this.#revoke(request.id);
    } catch (error) {
      if (keysAreBusy(error)) return { refused: 'keys_busy', retryIn: BUSY_RETRY_MS };
      // The keys are imported from another server: they can only be changed there.
      if (error instanceof AtlasError && error.code === 'E_USAGE')
        return { refused: request.do === 'create' ? 'sign_up_closed' : 'key_not_self_issued' };
      this.#options.log.error({ problem: messageOf(error) }, 'a key could not be stored');
      return { refused: 'internal' };
    }
  }

  #create(network: string): KeyOutcome {
    const { dataDir, isOpen, defaultRate, total = SIGN_UPS_TOTAL } = this.#options;
    if (!isOpen) return { refused: 'sign_up_closed' };
    this.forget();
    const times = this.#networks.get(network) ?? [];
    const full = times.length >= SIGN_UPS_PER_NETWORK ? times : this.#all.length >= total ? this.#all : undefined;
    if (full !== undefined) return { refused: 'sign_up_limit', retryIn: full[0]! + SIGN_UP_WINDOW_MS - this.#now() };
    const rate = defaultRate === 0 ? SIGN_UP_RATE : Math.min(SIGN_UP_RATE, defaultRate);
    const { id, key, expires } = createKey(dataDir, { rate, self_issued: true }, SERVER_WRITE_TIMEOUT_MS);
    const now = this.#now();
    times.push(now);
    this.#all.push(now);
    this.#networks.set(network, times);
    return { created: { id, key, rate, expires: expires! } };
  }

  #revoke(id: string): KeyOutcome {
    const revoked = revokeSelfIssuedKey(this.#options.dataDir, id);
    return revoked === undefined ? { refused: 'key_not_self_issued' } : { revoked: { id, revoked } };
  }
}

function dropBefore(times: Times, before: number): void {
  while (times.length > 0 && times[0]! <= before) times.shift();
}
