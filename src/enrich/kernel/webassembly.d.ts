/** The part of WebAssembly that the host uses. Its types come with the DOM library of TypeScript only. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Memory {
    /** Sizes in pages of 64 KiB. */
    constructor(descriptor: { initial: number; maximum: number; shared: boolean });
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
    grow(pages: number): number;
  }
  class Global {
    value: number | bigint;
  }
  class Instance {
    constructor(module: Module, imports: { env: { memory: Memory } });
    readonly exports: object;
  }
}
