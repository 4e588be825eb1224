/** Runs a stage and records its time and its counts. The order of the stages is in build.ts. */
import type { Counts, Stage, StageContext } from './stage.js';

export class StageRunner {
  /** For `report.json`, in the order in which the stages ran. */
  readonly report: { stage: string; seconds: number; counts: Counts }[] = [];
  readonly #context: StageContext;
  readonly #signal: AbortSignal | undefined;

  /** @param signal ends the build before the next stage */
  constructor(context: StageContext, signal: AbortSignal | undefined) {
    this.#context = context;
    this.#signal = signal;
  }

  async run<Input, Output>(stage: Stage<Input, Output>, input: Input): Promise<Output> {
    this.#signal?.throwIfAborted();
    const start = performance.now();
    const { output, counts } = await stage.run(input, this.#context);
    const seconds = (performance.now() - start) / 1000;
    this.report.push({ stage: stage.name, seconds: Number(seconds.toFixed(3)), counts });
    // Counts of a single source, `id.rows`, are only in the report: the line would become too long.
    const facts = Object.entries(counts)
      .filter(([name]) => !name.includes('.'))
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`);
    this.#context.note(`${stage.name.padEnd(9)}  ${seconds.toFixed(2).padStart(6)} s  ${facts.join(', ')}`);
    return output;
  }
}
