export function seconds(run: () => unknown): Promise<number>;
export function leastSeconds(runs: number, ...functions: (() => unknown)[]): Promise<number[]>;
export function row(name: string, value: string, goal?: string, met?: boolean): void;
export function section(title: string): void;
export function missed(): number;
export function randomWords(seed: number): () => number;
