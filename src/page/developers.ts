/** The script of the page about the API: makes, shows and revokes keys, and puts them into the examples. */
import { byId, numberText, startCopying } from './dom.js';
import { problemOf, RequestError } from './problems.js';
import { keyState, revokeKey, signUp } from './service.js';

const EXAMPLES = ['curl', 'curl-batch', 'client'];
const PLACEHOLDER = '<API_KEY>';

/** Returns a wait for people. @param seconds to wait */
function waitText(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 1 ? 'in a minute' : `in ${minutes} minutes`;
}

function keyProblem(error: unknown): string {
  if (!(error instanceof RequestError) || error.status !== 429) return problemOf(error);
  return `Too many keys were made from your network. Try again ${waitText(error.retryAfter ?? 60)}.`;
}

/** The key that was made here, which the examples show. */
let shown = '';

/** Shows a key in the examples. @param key empty for the placeholder */
function showInExamples(key: string): void {
  for (const id of EXAMPLES) {
    const code = byId(id);
    code.textContent = code.textContent!.replace(shown || PLACEHOLDER, key || PLACEHOLDER);
  }
  shown = key;
}

function forget(key: string): void {
  if (key !== shown) return;
  showInExamples('');
  byId('new-key').hidden = true;
  byId('key-text').textContent = '';
}

/** Asks whether a key shall be revoked. */
function confirmRevocation(): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>('revoke-dialog');
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'revoke'), { once: true });
  });
}

function startKeys(): void {
  const make = document.getElementById('make-key') as HTMLButtonElement | null;
  if (make === null) return;
  const status = byId('key-status');
  const input = byId<HTMLInputElement>('key-input');
  /** Runs an action and tells its outcome. */
  async function act(pressed: HTMLButtonElement | null, action: () => Promise<string>): Promise<void> {
    if (pressed !== null) pressed.disabled = true;
    status.textContent = 'One moment …';
    try {
      status.textContent = await action();
    } catch (error) {
      status.textContent = keyProblem(error);
    } finally {
      if (pressed !== null) pressed.disabled = false;
    }
  }
  make.addEventListener('click', () =>
    act(make, async () => {
      const { id, key, rate } = await signUp();
      byId('key-text').textContent = key;
      byId('new-key').hidden = false;
      input.value = key;
      showInExamples(key);
      return `This is key ${id}, for ${numberText(rate)} addresses a minute. Copy it now: it is shown only once.`;
    }),
  );
  byId<HTMLFormElement>('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    void act(null, async () => {
      const { id, rate, remaining } = await keyState(input.value.trim());
      const left = remaining === undefined ? '' : `, ${numberText(remaining)} of them left now`;
      return rate === 0 ? `Key ${id} has no limit.` : `Key ${id}: ${numberText(rate)} addresses a minute${left}.`;
    });
  });
  const revoke = byId<HTMLButtonElement>('revoke-key');
  revoke.addEventListener('click', async () => {
    if (!input.reportValidity() || !(await confirmRevocation())) return;
    void act(revoke, async () => {
      const key = input.value.trim();
      await revokeKey(key);
      input.value = '';
      forget(key);
      return 'The key is revoked.';
    });
  });
}

startKeys();
startCopying();
