/**
 * Keys that people make for themselves. One process of a server does this for all workers.
 *
 * The counts are in keys.sqlite, so that a restart does not begin them anew. Nothing else is known of a person.
 */
import { createHmac } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type Sqlite from 'better-sqlite3';
import { networkOf } from '../../address/network.js';
import { AtlasError, messageOf } from '../../errors.js';
import { SIGN_UP_RATE, SIGN_UP_WINDOW_MS, SIGN_UPS_PER_NETWORK } from '../../limits.js';
import type { Log } from '../log.js';
import { createKey, keysAreBusy, revokeSelfIssuedKey, SERVER_WRITE_TIMEOUT_MS } from './key-store.js';

/** When to try again if another process is writing the keys, in milliseconds. */
const BUSY_RETRY_MS = 1_000;

/** What a worker asks for. */
export type KeyRequest =
  | {
      do: 'create';
      /** The address that asks. */
      caller: string;
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

export type KeyService = (request: KeyRequest) => KeyOutcome | Promise<KeyOutcome>;

export interface SignUpOptions {
  dataDir: string;
  isOpen: boolean;
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  defaultRate: number;
  log: Log;
  /** The time in milliseconds since 1970. */
  now?: () => number;
}

/** Bits of a network's hash that are stored. */
const NETWORK_BITS = 20;

/** The networks of an address whose keys are counted, with the keys that each may make. */
function countedNetworks(address: string): { network: string; most: number }[] {
  const sizes = isIPv4(address) ? ([64] as const) : ([64, 56, 48] as const);
  return sizes.map((bits) => ({ network: networkOf(address, bits), most: SIGN_UPS_PER_NETWORK[bits] }));
}

/** Thrown within the transaction that creates a key: the network has made enough. */
class SignUpLimit extends Error {
  readonly retryIn: number;

  constructor(retryIn: number) {
    super();
    this.retryIn = retryIn;
  }
}

export class SignUps {
  readonly #options: SignUpOptions;
  readonly #now: () => number;

  constructor(options: SignUpOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Answers a request of a worker. Errors are logged, without anything of the request. */
  handle(request: KeyRequest): KeyOutcome {
    try {
      return request.do === 'create' ? this.#create(request.caller) : this.#revoke(request.id);
    } catch (error) {
      if (error instanceof AtlasError && error.cause instanceof SignUpLimit) {
        return { refused: 'sign_up_limit', retryIn: error.cause.retryIn };
      }
      if (keysAreBusy(error)) return { refused: 'keys_busy', retryIn: BUSY_RETRY_MS };
      // The keys are imported from another server: they can only be changed there.
      if (error instanceof AtlasError && error.code === 'E_USAGE')
        return { refused: request.do === 'create' ? 'sign_up_closed' : 'key_not_self_issued' };
      this.#options.log.error({ problem: messageOf(error) }, 'a key could not be stored');
      return { refused: 'internal' };
    }
  }

  #create(caller: string): KeyOutcome {
    const { dataDir, isOpen, defaultRate } = this.#options;
    if (!isOpen) return { refused: 'sign_up_closed' };
    const rate = defaultRate === 0 ? SIGN_UP_RATE : Math.min(SIGN_UP_RATE, defaultRate);
    const { id, key, expires } = createKey(dataDir, { rate, self_issued: true }, SERVER_WRITE_TIMEOUT_MS, (database) =>
      this.#count(database, caller),
    );
    return { created: { id, key, rate, expires: expires! } };
  }

  /** Counts a key for the networks of its maker. Throws {@link SignUpLimit} if one of them has made enough. */
  #count(database: Sqlite.Database, caller: string): void {
    const now = this.#now();
    // A window that ends later than one that begins now is from before the clock was set back.
    database.prepare('DELETE FROM sign_up WHERE ends <= ? OR ends > ?').run(now, now + SIGN_UP_WINDOW_MS);
    const secret = database.prepare<[], Buffer>('SELECT secret FROM sign_up_secret').pluck().get()!;
    const find = database.prepare<[number], { made: number; ends: number }>(
      'SELECT made, ends FROM sign_up WHERE network = ?',
    );
    const add = database.prepare(
      'INSERT INTO sign_up (network, made, ends) VALUES (?, 1, ?) ON CONFLICT (network) DO UPDATE SET made = made + 1',
    );
    for (const { network, most } of countedNetworks(caller)) {
      const number = createHmac('sha256', secret).update(network).digest().readUInt32BE() >>> (32 - NETWORK_BITS);
      const counted = find.get(number);
      if (counted !== undefined && counted.made >= most) throw new SignUpLimit(counted.ends - now);
      add.run(number, now + SIGN_UP_WINDOW_MS);
    }
  }

  #revoke(id: string): KeyOutcome {
    const revoked = revokeSelfIssuedKey(this.#options.dataDir, id);
    return revoked === undefined ? { refused: 'key_not_self_issued' } : { revoked: { id, revoked } };
  }
}
