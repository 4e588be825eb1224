/** Worker threads over one shared memory: a block is named by its slot, and its bytes never move. */
import { Worker } from 'node:worker_threads';
import { AtlasError, messageOf } from '../errors.js';
import { packageFile } from '../package-root.js';
import { kernelModule } from './kernel/kernel.js';
import type { KernelLayout } from './kernel/layout.js';
import type { WorkerAnswer, WorkerStart } from './worker.js';

/** The compiled file: a thread cannot be started from TypeScript. */
const WORKER_FILE = 'dist/src/enrich/worker.js';

/** Runs that a worker has at a time: one that it works on, and one so that it need not wait for the next. */
const RUNS_AT_A_TIME = 2;

interface Run {
  resolve: (done: boolean) => void;
  reject: (error: unknown) => void;
}

/** A thread, and the runs that it has not answered, by slot. */
interface Member {
  thread: Worker;
  /** Starting takes some time; it is given nothing before it can begin. */
  ready: boolean;
  runs: Map<number, Run>;
}

export class WorkerPool {
  readonly #size: number;
  readonly #members: Member[] = [];
  #work: WorkerStart | undefined;

  /** @param size number of threads */
  constructor(size: number) {
    this.#size = size;
  }

  /** Starts the threads, where that has not been done. They may start before there is anything to work in. */
  start(): void {
    while (this.#members.length < this.#size) this.#members.push(this.#startOne());
  }

  /** Says what memory to work in, once. */
  workIn(layout: KernelLayout): void {
    this.#work = { layout, module: kernelModule() };
    for (const { thread } of this.#members) thread.postMessage(this.#work);
  }

  #idlest(): Member | undefined {
    const able = this.#members.filter(({ ready, runs }) => ready && runs.size < RUNS_AT_A_TIME);
    return able.reduce<Member | undefined>((least, member) => {
      return least === undefined || member.runs.size < least.runs.size ? member : least;
    }, undefined);
  }

  /** Whether a thread can take another run. */
  get hasRoom(): boolean {
    return this.#idlest() !== undefined;
  }

  /**
   * Has a thread run the kernel over a slot; one must have room.
   *
   * @returns whether all its lines were dealt with
   * @throws AtlasError E_FAULT where the thread ends
   */
  run(slot: number): Promise<boolean> {
    const member = this.#idlest()!;
    return new Promise((resolve, reject) => {
      member.runs.set(slot, { resolve, reject });
      member.thread.postMessage(slot);
    });
  }

  #startOne(): Member {
    const member: Member = {
      thread: new Worker(packageFile(WORKER_FILE)),
      ready: false,
      runs: new Map(),
    };
    member.thread.on('message', (answer: WorkerAnswer) => {
      if (answer === 'ready') {
        member.ready = true;
        return;
      }
      const [slot, done] = answer;
      const run = member.runs.get(slot);
      member.runs.delete(slot);
      run?.resolve(done);
    });
    member.thread.on('error', (cause) => {
      member.ready = false;
      const error = new AtlasError('E_FAULT', `a worker thread ended: ${messageOf(cause)}`, { cause });
      for (const run of member.runs.values()) run.reject(error);
    });
    if (this.#work !== undefined) member.thread.postMessage(this.#work);
    return member;
  }

  /** Ends the threads; what they are working on is abandoned. */
  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ thread }) => thread.terminate()));
  }
}
