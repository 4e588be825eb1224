/**
 * The descriptors of standard input, output and error. They are variables so that tests can run commands in their own
 * process, with files in the place of the standard streams.
 */
export const STANDARD_FD = { input: 0, output: 1, error: 2 };

/** The path that means standard input. */
export const STDIN_PATH = '-';
