/** What a page and its worker tell each other. */
import type { Progress } from './batch.js';
import type { Filter, Order } from './entries.js';
import type { DownloadFormat, Hiding, Row } from './results.js';

/** Rows that are sent at once. */
export const ROWS_PER_BLOCK = 200;

export type ToWorker =
  /** Looks up a text. `db` is the URL of the database for the browser; without it, the server is asked. `base` is the URL of the page; `log` and `lang` as of `Batch`. */
  | { do: 'start'; source: Blob; db: string | undefined; base: string; log: string; lang: string }
  /** Adds the networks of this URL to all rows, or none. */
  | { do: 'networks'; url: string | undefined }
  /** Goes on with what was canceled or failed. */
  | { do: 'continue' }
  | { do: 'cancel' }
  /** Selects the rows that are shown; `view` numbers the selection. */
  | { do: 'select'; view: number; filter: Filter; order: Order }
  | { do: 'rows'; view: number; block: number }
  | { do: 'download'; format: DownloadFormat; hiding: Hiding };

export type FromWorker =
  | { said: 'progress'; progress: Progress }
  /** Whether rows have networks from now on; and what is wrong if they cannot be loaded. */
  | { said: 'networks'; areShown: boolean; problem: string }
  /** The rate is used up. */
  | { said: 'wait'; seconds: number }
  | { said: 'end'; outcome: 'done' | 'canceled' | 'failed'; problem: string; progress: Progress; seconds: number }
  | { said: 'selected'; view: number; count: number }
  | { said: 'rows'; view: number; block: number; rows: Row[] }
  | { said: 'file'; format: DownloadFormat; file: Blob };
