/** Draws a terminal: what commands print in a real run, as SVG. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** What is shown, and what is run for it: the seed answers, so that the picture is the same on every machine. */
const COMMANDS = [
  [
    'ipatlas 193.0.6.139 2001:4860:4860::8888 10.0.0.1',
    'ipatlas lookup --seed 193.0.6.139 2001:4860:4860::8888 10.0.0.1',
  ],
  [
    `echo '{"ip":"193.0.6.139","status":200}' | ipatlas enrich`,
    `echo '{"ip":"193.0.6.139","status":200}' | ipatlas enrich --seed`,
  ],
];

const SIZE = 15;
const LINE = 24;
const CHARACTER = 9.05;
const MARGIN = 24;
const BAR = 36;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Returns what a command prints on a terminal, without what it says on stderr. */
function outputOf(command, root) {
  const start = join(root, 'dist/src/cli/start.cjs');
  const line = command
    .replace('ipatlas', `'${process.execPath}' '${start}'`)
    .replace('| ipatlas', `| '${process.execPath}' '${start}'`);
  // "script" gives it a terminal, on which lookups are a table.
  const run = spawnSync('script', ['-qec', `(${line}) 2>/dev/null`, '/dev/null'], {
    encoding: 'utf8',
    env: { ...process.env, COLUMNS: '100' },
  });
  if (run.status !== 0) throw new Error(`${command} ended with ${run.status}: ${run.stdout}`);
  return stripVTControlCharacters(run.stdout).replaceAll('\r', '').trimEnd().split('\n');
}

/** Returns the picture. @param root folder of the repository, compiled */
export function terminalPicture(root) {
  const lines = COMMANDS.flatMap(([shown, run]) => [
    { prompt: shown },
    ...outputOf(run, root).map((text) => ({ text })),
    { text: '' },
  ]);
  lines.pop();
  const longest = Math.max(
    ...lines.map(({ prompt, text }) => (prompt === undefined ? text.length : prompt.length + 2)),
  );
  const width = Math.ceil(2 * MARGIN + CHARACTER * longest);
  const height = BAR + LINE * lines.length + MARGIN;
  const texts = lines.map(({ prompt, text }, index) => {
    const y = BAR + LINE * (index + 1) - 4;
    const content =
      prompt === undefined
        ? escaped(text)
        : `<tspan fill="#f08a5d">$</tspan> <tspan fill="#ffffff">${escaped(prompt)}</tspan>`;
    return `<text x="${MARGIN}" y="${y}" xml:space="preserve">${content}</text>`;
  });
  const dots = [0, 1, 2].map((i) => `<circle cx="${MARGIN + 18 * i}" cy="20" r="5" fill="#33445e"/>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A terminal: ${escaped(COMMANDS.map(([shown]) => shown).join('; '))}</title>
<rect width="${width}" height="${height}" rx="12" fill="#0d1624"/>
${dots.join('\n')}
<g font-family="ui-monospace, 'SF Mono', 'Cascadia Mono', 'Liberation Mono', monospace" font-size="${SIZE}" fill="#b9c6d8">
${texts.join('\n')}
</g>
</svg>
`;
}
