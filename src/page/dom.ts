/** Small helpers of all scripts of the pages. */

export function byId<Type extends HTMLElement>(id: string): Type {
  return document.getElementById(id) as Type;
}

export const numberText = (value: number): string => value.toLocaleString('en-US');

export const percent = (part: number, whole: number): string =>
  `${whole === 0 ? '0' : ((100 * part) / whole).toFixed(1)} %`;

/** Returns a size in bytes for people. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [unit, factor] = bytes < 1e6 ? ['kB', 1e3] : bytes < 1e9 ? ['MB', 1e6] : ['GB', 1e9];
  return `${(bytes / (factor as number)).toFixed(1)} ${unit}`;
}

/** Returns a number with its noun, in the plural unless it is 1. */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

/** Copies the text of the element that a button names, in all buttons with the class `copy`, now and later. */
export function startCopying(): void {
  document.addEventListener('click', async ({ target }) => {
    const pressed = target instanceof Element ? target.closest<HTMLButtonElement>('button.copy') : null;
    if (pressed === null) return;
    const source = byId(pressed.dataset.copy!);
    const label = pressed.firstChild!;
    try {
      await navigator.clipboard.writeText(source.textContent ?? '');
      label.textContent = 'copied';
    } catch {
      // Without permission to the clipboard, the text is selected instead.
      getSelection()?.selectAllChildren(source);
      label.textContent = 'selected';
    }
    setTimeout(() => {
      label.textContent = 'copy';
    }, 2_000);
  });
}

/**
 * Shows the seconds until something goes on, each second, at the end of an element; they are not read out again.
 *
 * @returns a function that ends it
 */
export function countDown(seconds: number, parent: Element): () => void {
  const end = performance.now() + 1_000 * seconds;
  const left = document.createElement('span');
  left.setAttribute('role', 'timer');
  parent.append(left);
  const tell = (): void => {
    left.textContent = `${Math.max(0, Math.ceil((end - performance.now()) / 1_000))} s`;
  };
  tell();
  const timer = setInterval(tell, 1_000);
  return () => clearInterval(timer);
}
