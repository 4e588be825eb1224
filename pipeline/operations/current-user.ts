/** Who runs this: for the records of what a person decided against the machine. */
import { userInfo } from 'node:os';

/** The name of the account; behind sudo, that of the person and not root. */
export function whoAmI(): string {
  if (process.env.SUDO_USER) return process.env.SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // an account without a name, as containers have
  }
}
