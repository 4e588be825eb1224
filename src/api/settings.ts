/** What a server is told when it starts. */
import type { BaseUrls } from './openapi.js';

export interface ServeSettings {
  dataDir: string;
  /** Undefined: all addresses, IPv6 and IPv4. */
  host: string | undefined;
  /** 0 for any free one. */
  port: number;
  /** Processes that answer. */
  workers: number;
  /** CIDR blocks of the proxies whose `X-Forwarded-For` counts. */
  trustProxy: string[];
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  rate: number;
  accessLog: boolean;
  /** Where this server stands; goes out as `X-Served-By`. */
  region: { name: string; country: string; eu: boolean } | undefined;
  /** Undefined: no metrics. */
  metricsPort: number | undefined;
  baseUrls: BaseUrls;
}
